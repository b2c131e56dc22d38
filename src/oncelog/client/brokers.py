"""The brokers of a cluster, each connected to when it is first needed: by number, or by what it coordinates."""

from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Self

from oncelog.client.connection import Connection
from oncelog.client.errors import ClientError, Fatal, Retriable, error_for
from oncelog.client.metadata import ClusterView, view_of
from oncelog.client.retrying import retrying
from oncelog.model.address import Address
from oncelog.model.error_code import ErrorCode
from oncelog.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from oncelog.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

TRANSACTION_COORDINATOR = 1
MANY_COORDINATORS_SINCE = 4


class Brokers:
    """Closes its connections when left. `bootstrap` are brokers to begin with: the first that answers tells of the others."""

    def __init__(self, bootstrap: Sequence[Address], client_id: str) -> None:
        self._bootstrap = bootstrap
        self._client_id = client_id
        self._first: Connection | None = None
        self._connections: dict[int, Connection] = {}
        self._addresses: dict[int, Address] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for connection in (self._first, *self._connections.values()):
            if connection is not None:
                connection.close()

    def any(self) -> Connection:
        """A connection to whichever bootstrap broker answers first."""
        problems: list[ClientError] = []
        for address in self._bootstrap:
            if self._first is not None:
                break
            try:
                self._first = Connection(address, self._client_id)
            except ClientError as problem:
                problems.append(problem)
        if self._first is None:
            raise problems[0] if len(problems) == 1 else Retriable("; ".join(map(str, problems)))
        return self._first

    def node(self, node_id: int) -> Connection:
        """A connection to this broker, at the address it advertises."""
        connection = self._connections.get(node_id)
        if connection is None:
            if node_id not in self._addresses:
                self.view(())
            address = self._addresses.get(node_id)
            if address is None:
                known = ", ".join(map(str, sorted(self._addresses)))
                raise Fatal(f"there is no broker {node_id} in this cluster: it has {known}")
            connection = self._connections[node_id] = Connection(address, self._client_id)
        return connection

    def view(self, topics: Iterable[str] | None = None) -> ClusterView:
        """The cluster with these topics; with all of them if none are named. Never creates one."""
        named = None if topics is None else [MetadataRequestTopic(name=topic) for topic in topics]
        request = MetadataRequest(topics=named, allow_auto_topic_creation=False)
        # Before this version an empty list means every topic, and asking for a topic creates it.
        view = view_of(self.any().call(request, MetadataResponse, at_least=4))
        self._addresses.update(view.brokers)
        return view

    def transaction_coordinators(self, transactional_ids: Iterable[str]) -> dict[int, list[str]]:
        """The transactional ids, grouped by the broker that coordinates them."""
        return retrying(lambda: self._find_coordinators(sorted(set(transactional_ids))))

    def _find_coordinators(self, transactional_ids: list[str]) -> dict[int, list[str]]:
        if not transactional_ids:
            return {}
        request = FindCoordinatorRequest(key_type=TRANSACTION_COORDINATOR, coordinator_keys=transactional_ids)
        response = self.any().call(request, FindCoordinatorResponse, at_least=MANY_COORDINATORS_SINCE)
        groups: dict[int, list[str]] = {}
        for found in response.coordinators:
            if found.error_code != ErrorCode.NONE:
                raise error_for(found.error_code, f'finding the coordinator of "{found.key}"')
            self._addresses[found.node_id] = Address(found.host, found.port)
            groups.setdefault(found.node_id, []).append(found.key)
        return groups
