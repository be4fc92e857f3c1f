"""An audit as a picture

All questions on one scale, standard deviations from what chance shows, with adjusted p-values.
"""

import caltest as ct

picture = ct.audit(ct.examples.digits("best"), rng=0).plot()
