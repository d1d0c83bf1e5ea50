"""Access tokens for Amazon MSK: a request to connect, which AWS' credentials sign (SigV4), and that nobody sends.

Signing asks nobody. Credentials are those that botocore finds: the environment, a profile, a pod's role (IRSA, Pod
Identity), the machine's; it gets new ones in time.
"""

import base64
import os
import re
import time
from collections.abc import Callable

from brokers.errors import in_one_line
from brokers.tokens import Token, TokenError, Tokens, TokenSettingsError

LIFE_S = 900
"""Of a token, as MSK has it."""
_COUNTS_S = 600
"""So long is it used at most: the credentials that botocore signs with are good for that."""
_SERVICE, _ACTION, _AGENT = "kafka-cluster", "kafka-cluster:Connect", "kcga"
_OF_MSK = re.compile(r"\.kafka(?:-serverless)?\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?(?=[:,\s]|$)")


class MskIamTokens(Tokens):
    """
    Args:
        bootstrap_servers: tell the region where they are MSK's own names.
        clock: seconds; never goes back.

    Raises:
        TokenSettingsError: botocore is not installed, a profile is wrong, or no region is known.
    """

    def __init__(self, bootstrap_servers: str, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__("the access token that AWS' credentials signed has expired", clock=clock)
        try:
            from botocore.exceptions import BotoCoreError
            from botocore.session import Session
        except ImportError as error:
            raise TokenSettingsError(
                "msk-iam takes botocore, which is not installed: pip install 'kcga[aws]'"
            ) from error
        self._session = Session()
        try:
            configured = self._session.get_config_variable("region")
        except BotoCoreError as error:
            raise TokenSettingsError(f"AWS' configuration cannot be used: {in_one_line(error)}") from error
        named = _OF_MSK.search(bootstrap_servers)
        self._region = named[1] if named else os.environ.get("AWS_REGION") or configured
        if not self._region:
            raise TokenSettingsError(
                "the region of the MSK cluster is not known: kafka.bootstrap_servers must have MSK's own names, or the "
                "environment AWS_REGION"
            )

    def _answer(self) -> Token:
        from botocore.auth import SigV4QueryAuth
        from botocore.awsrequest import AWSRequest
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            credentials = self._session.get_credentials()
            signing = credentials and credentials.get_frozen_credentials()
        except (BotoCoreError, ClientError, OSError, RuntimeError, ValueError) as error:
            raise TokenError(
                f"there is no access token: AWS gives no credentials ({in_one_line(error)}); correct AWS_PROFILE, or "
                "the role of this pod or machine and who may assume it"
            ) from error
        if signing is None:
            raise TokenError(
                "there is no access token: no credentials of AWS are found; set AWS_ACCESS_KEY_ID and "
                "AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or give this pod or machine a role"
            )
        now = time.time()
        request = AWSRequest("GET", f"https://kafka.{self._region}.amazonaws.com/", params={"Action": _ACTION})
        SigV4QueryAuth(signing, _SERVICE, self._region, expires=LIFE_S).add_auth(request)
        signed = f"{request.url}&User-Agent={_AGENT}"  # it is no part of what is signed
        text = base64.urlsafe_b64encode(signed.encode()).rstrip(b"=").decode()
        return Token(text, signing.access_key, now + _COUNTS_S)
