"""TokenReviews and SelfSubjectReviews: who a token is, and who sends this request."""

from __future__ import annotations

from konverge_cluster.api import status_errors
from konverge_cluster.api.calls import Call
from konverge_cluster.api.cluster import Cluster
from konverge_cluster.api.documents import read_document
from konverge_cluster.api.options import WriteOptions
from konverge_cluster.api.responses import Response, json_response
from konverge_cluster.api.strategy import Document
from konverge_cluster.api.writes import admission_request, run_mutating_admission, run_validating_admission
from konverge_cluster.authentication.authenticator import Authenticator
from konverge_cluster.authentication.service_account_tokens import ISSUER, InvalidToken

__all__ = ["TokenReviews", "review_self"]


class TokenReviews:
    """The handler of TokenReviews."""

    def __init__(self, authenticator: Authenticator) -> None:
        self._authenticator = authenticator

    async def create(self, cluster: Cluster, call: Call) -> Response:
        """Authenticate the token in the request; one that is not accepted is no error.

        Raises: StatusError.
        """
        review = await _admitted(cluster, call)
        spec = review["spec"]
        token = spec.get("token", "")
        if not token:
            raise status_errors.bad_request("token is required for TokenReview in authentication")
        review["status"] = self._status(token, spec.get("audiences") or [ISSUER])
        return json_response(201, review)

    def _status(self, token: str, audiences: list[str]) -> Document:
        try:
            user, accepted = self._authenticator.authenticate_token(token, audiences)
        except InvalidToken as error:
            return {"user": {}, "error": str(error)}
        return {"authenticated": True, "user": user.document(), "audiences": accepted}


async def review_self(cluster: Cluster, call: Call) -> Response:
    """Return the user of this request.

    Raises: StatusError.
    """
    review = await _admitted(cluster, call)
    return json_response(
        201,
        {
            "kind": review["kind"],
            "apiVersion": review["apiVersion"],
            "metadata": {"creationTimestamp": cluster.now()},
            "status": {"userInfo": call.user.document()},
        },
    )


async def _admitted(cluster: Cluster, call: Call) -> Document:
    """Read the body of a review, and run admission on it."""
    options = WriteOptions.read(call.query, "CreateOptions")
    document = read_document(cluster, call, options.validation)
    admission = admission_request(call, "CREATE", document, None, options)
    admission.object = await run_mutating_admission(cluster, admission)
    await run_validating_admission(cluster, admission)
    return admission.object
