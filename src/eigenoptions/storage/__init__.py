"""Files that vouch for what is in them: sealed safetensors files, journals of sealed records, and locks.

A path holds a whole file or the old one, and a damaged file is told as such. No pickle, ever.
"""

from eigenoptions.storage.journal import Journal, Place, check_format
from eigenoptions.storage.lock import Lock
from eigenoptions.storage.plain import decode, encode
from eigenoptions.storage.sealed import KEY, pick, read, write

__all__ = ["KEY", "Journal", "Lock", "Place", "check_format", "decode", "encode", "pick", "read", "write"]
