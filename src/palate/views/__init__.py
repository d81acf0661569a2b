"""Views: what a reward model may see of the user, and the chat turns that come of it."""

from palate.views.fit import Budget, fit
from palate.views.look import PROMPT_DIGESTS, look
from palate.views.materials import Looker, NoContext, Plans
from palate.views.view import View

__all__ = ["PROMPT_DIGESTS", "Budget", "Looker", "NoContext", "Plans", "View", "fit", "look"]
