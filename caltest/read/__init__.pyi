"""Read files and data frames as predictions."""

from .columns import choose_labels as choose_labels
from .columns import named as named
from .files import FORMATS as FORMATS
from .files import parts_of as parts_of
from .files import pooled as pooled
from .files import read_chosen as read_chosen
from .files import refuse_pooling as refuse_pooling
from .files import refuse_same_labels as refuse_same_labels
from .files import source_of as source_of
from .formats import ENDINGS as ENDINGS
from .meaning import chosen_of as chosen_of
from .meaning import times_among as times_among
from .source import DATES as DATES
from .source import Column as Column
from .source import Source as Source
from .source import key as key
