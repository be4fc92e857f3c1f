"""What a score is made of

From the score of always saying the same to that of the model: what its ranking takes off, and what
its miscalibration costs.
"""

import caltest as ct

picture = ct.corp_decomposition(ct.examples.digits("overfit")).plot()
