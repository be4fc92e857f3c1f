"""Files and frames to predictions."""

from .contract import Wanted as Wanted
from .contract import contract_text as contract_text
from .expressions import quoted as quoted
from .files import parts_of as parts_of
from .formats import FORMATS as FORMATS
