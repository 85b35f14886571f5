/// How a connection ended in order, and what went over it.
struct ClosingFacts: Sendable {
    enum Party: String, Sendable {
        case us, peer
    }

    /// Who ended it first.
    var by: Party
    /// The id of a connection of a gateway that we let go and that goes on; `nil`: the connection is closed.
    var detachedFrom: String?
    /// Of the first Close frame; `nil` on a stream, and for a Close frame without one.
    var code: UInt16?
    var reason = ""
    var bytesReceived: UInt64 = 0
    var bytesSent: UInt64 = 0

    /// In one line.
    var line: String {
        if let detachedFrom {
            return
                "detached from \(detachedFrom), which goes on; \(self.bytesReceived) bytes received, \(self.bytesSent) sent"
        }
        let code = self.code.map { " with \($0)" } ?? ""
        let who = self.by == .us ? "us" : "the peer"
        let reason = self.reason.isEmpty ? "" : " \"\(self.reason)\""
        return "closed by \(who)\(code)\(reason); \(self.traffic)"
    }

    private var traffic: String { "\(self.bytesReceived) bytes received, \(self.bytesSent) sent" }
}
