"""What the features of a model directory's commits were, by digest: so that a refusal can say what changed."""

import json
import logging
from typing import Final

from checkpointer import Store
from checkpointer.errors import ExistsError, NotFoundError, StoreError
from features import FeatureSet
from features.drift import changes

logger = logging.getLogger(__name__)

FOLDER: Final = "features"


def record_features(store: Store, features: FeatureSet) -> None:
    """Keep the description under its digest; without it a later refusal only says less."""
    path = f"{FOLDER}/{features.digest()}.json"
    try:
        store.put_if_absent(path, json.dumps(features.describe()).encode())
    except ExistsError:
        return
    except StoreError as error:
        logger.warning("features are not described path=%s error=%s", path, error)


def what_changed(store: Store, digest: str, features: FeatureSet) -> str:
    """In words, what is different from the features that had this digest; "" where that is not known."""
    if digest == features.digest():
        return ""
    try:
        old = json.loads(store.get(f"{FOLDER}/{digest}.json"))
    except (NotFoundError, ValueError):
        return ""
    return "; ".join(changes(old, json.loads(json.dumps(features.describe())))) if isinstance(old, dict) else ""
