import StreamTransport

/// One accepted connection's place among those that admission counts, given back once. It outlives the connection's way
/// in, so that nothing else of that needs to.
final class AdmissionTicket {
    private enum Standing {
        case none
        /// Accepted; the client is still to say who it is.
        case arriving
        case admitted
        /// Refused, and waiting to be told so.
        case answering
    }

    private let shared: GatewayShared
    private let listener: String
    private var client: IPAddress?
    private var standing = Standing.none

    init(listener: String, shared: GatewayShared) {
        self.listener = listener
        self.shared = shared
    }

    /// A place is asked for in a later turn, when the client is known; meanwhile a reload may take the listener away.
    func arrive() {
        let listener = self.listener
        self.shared.withAdmission { $0.beginArrival(listener: listener) }
        self.standing = .arriving
    }

    /// Asks admission for a place.
    /// - Returns: why there is none.
    func take(client: IPAddress?, at now: MonotonicInstant) -> AdmissionRefusal? {
        let listener = self.listener
        let hadArrived = if case .arriving = self.standing { true } else { false }
        let refusal = self.shared.withAdmission { admission in
            defer { if hadArrived { admission.endArrival(listener: listener) } }
            return admission.admit(listener: listener, client: client, at: now)
        }
        self.standing = .none
        self.client = client
        if refusal == nil { self.standing = .admitted }
        return refusal
    }

    /// Asks for leave to tell a refused client so, which costs what an admitted one does.
    func takeAnswer() -> Bool {
        guard self.shared.withAdmission({ $0.beginAnswer() }) else { return false }
        self.standing = .answering
        return true
    }

    func release() {
        let (listener, client) = (self.listener, self.client)
        switch self.standing {
        case .none: return
        case .arriving: self.shared.withAdmission { $0.endArrival(listener: listener) }
        case .admitted: self.shared.withAdmission { $0.release(listener: listener, client: client) }
        case .answering: self.shared.withAdmission { $0.endAnswer() }
        }
        self.standing = .none
    }
}
