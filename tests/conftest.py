"""Settings that hold for every test."""

import warnings

# fbgemm's CPU build warns at import that its GPU-only modules are absent; the suite turns every other warning into an error.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import fbgemm_gpu  # noqa: F401
    import torchrec  # noqa: F401
