"""Making the dense half into artefacts, and running them."""
