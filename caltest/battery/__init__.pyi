"""The verbs that ask several questions at once."""

from .audit import audit as audit
from .gate import gate as gate
