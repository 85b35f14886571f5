import HTTPTypes
import Hummingbird
import HummingbirdCore

/// One write: who, what, from where, and what came of it.
struct AuditEntry: Sendable {
    let operation: String
    /// Without the query, which may hold what is said to a peer.
    let path: String
    let caller: Caller
    let peer: String
    let status: Int
    /// Of the problem, if there was one.
    let code: String?

    init(_ operation: Operation, _ request: Request, by caller: Caller, status: Int, code: String?) {
        self.operation = operation.name
        self.path = String((request.head.path ?? "").prefix { $0 != "?" })
        self.caller = caller
        self.peer = ConnectionPeer.current?.description ?? "unknown"
        self.status = status
        self.code = code
    }
}
