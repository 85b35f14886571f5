/// Who ended a connection.
package enum TerminationParty: String, CaseIterable, Sendable {
    case downstream
    case upstream
    /// A limit or deadline of ours, or our own fault.
    case gateway
    /// A person or a program in charge: drain, reload, REST.
    case `operator`

    package init(_ side: TunnelSide) {
        switch side {
        case .downstream: self = .downstream
        case .upstream: self = .upstream
        }
    }
}
