"""Cox's recalibration

The frequency that two parameters give to every prediction, with 95 % bands.
"""

import caltest as ct

picture = ct.cox_recalibration(ct.examples.digits("overfit")).plot()
