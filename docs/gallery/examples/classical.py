"""Classical reliability diagram

Columns are accuracies, hatching marks the gap to the confidence, and the histogram is on top.
"""

import caltest as ct

digits = ct.examples.digits("overfit")
picture = ct.reliability_curve(digits, bins=10).plot(style="classical")
