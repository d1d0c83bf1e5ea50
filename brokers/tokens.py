"""Access tokens for SASL OAUTHBEARER: each is kept as long as it is good, and the next one asked for before it ends.

Whose they are is a subclass's: an identity provider's, Amazon's or Google's.
"""

import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import NamedTuple

import structlog
from kafka.net.sasl.oauth import AbstractTokenProvider

log = structlog.get_logger(__name__)

MECHANISM = "OAUTHBEARER"
CALLBACK = "oauth_cb"
"""The property by which librdkafka's clients are told whom to ask; kafka-python's take it from there, too."""
_RENEWED_AFTER = 0.8
"""Of a token's life, as librdkafka has it."""
_ASK_AGAIN_S = 5.0
_TOLD_AGAIN_S = 60.0


class TokenSettingsError(ValueError):
    """A property is missing or cannot be followed: says which."""


class TokenError(Exception):
    """There is no access token: says why, from whom, and what would be right, in one line."""


class Token(NamedTuple):
    text: str
    principal: str
    """Whom it is for."""
    expires_at: float
    """In seconds since the epoch."""


class _Kept(NamedTuple):
    token: Token
    due_at: float
    """When another is asked for; s on a clock that never goes back, as the next."""
    expires_at: float


class Tokens(AbstractTokenProvider):  # type: ignore[misc]
    """Each is used until shortly before it expires. From any thread.

    Args:
        expired: what is to be said where the last one has expired, and no other was asked for since.
        extensions: what is told to the brokers besides.
        clock: seconds; never goes back.
    """

    def __init__(
        self,
        expired: str,
        extensions: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._expired = expired
        self._extensions = dict(extensions or {})
        self._clock = clock
        self._asks = threading.Lock()
        self._kept: _Kept | None = None
        self._fault = "no access token was asked for yet"
        self._ask_again_at = self._tell_again_at = 0.0

    @abstractmethod
    def _answer(self) -> Token:
        """A token that nobody has had yet.

        Raises:
            TokenError: there is none.
        """

    def token(self) -> str:
        """For kafka-python: the one that `renew` has got; it waits for nobody.

        Raises:
            TokenError: there is none, or it has expired.
        """
        return self._good().token.text

    def extensions(self) -> dict[str, str]:
        """For kafka-python: what is told to the brokers besides."""
        return self._extensions

    def renew(self, *, wait: bool = False) -> None:
        """Makes sure that there is a token: waits for the first, and has the next ones asked for in the background.

        Args:
            wait: for the next ones, too.

        Raises:
            TokenError: there is none.
        """
        kept, now = self._kept, self._clock()
        due = kept is None or now >= max(kept.due_at, self._ask_again_at)
        if kept is None or kept.expires_at <= now or (due and wait):
            with self._asks:
                if self._kept is kept and self._clock() >= self._ask_again_at:
                    self._ask()
            self._good()
        elif due and self._asks.acquire(blocking=False):
            threading.Thread(target=self._ask_and_release, args=[kept], name="access-token", daemon=True).start()

    def __call__(self, _config: str) -> tuple[str, float, str, dict[str, str]]:
        """For librdkafka, which asks once four fifths of a token's life are over.

        Raises:
            TokenError: there is none; it is logged, since librdkafka does not pass it on.
        """
        try:
            self.renew(wait=True)
            token = self._good().token
        except TokenError as error:
            if (now := self._clock()) >= self._tell_again_at:
                self._tell_again_at = now + _TOLD_AGAIN_S
                log.warning("a kafka client gets no access token", reason=str(error))
            raise
        return token.text, token.expires_at, token.principal, self._extensions

    def _good(self) -> _Kept:
        kept = self._kept
        if kept is None or kept.expires_at <= self._clock():
            raise TokenError(self._fault)
        return kept

    def _ask_and_release(self, due: _Kept) -> None:
        try:
            if self._kept is due:
                self._ask()
        finally:
            self._asks.release()

    def _ask(self) -> None:
        try:
            token = self._answer()
            life_s, now = token.expires_at - time.time(), self._clock()
            if not life_s > 0:
                raise TokenError(
                    "there is no access token: what was given has expired already; set the clocks of this machine and "
                    "of who gives it"
                )
            self._kept = _Kept(token, now + _RENEWED_AFTER * life_s, now + life_s)
            self._fault = self._expired
        except TokenError as error:
            self._fault = str(error)
            self._ask_again_at = self._clock() + _ASK_AGAIN_S
