"""Making the dense half into artefacts, running them, and exporting a commit for serving on its own."""
