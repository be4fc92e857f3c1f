"""An audit as a picture

The adjusted p-value of every question: what is drawn, printed and decides is the same number.
"""

import caltest as ct

picture = ct.audit(ct.examples.digits("best"), rng=0).plot()
