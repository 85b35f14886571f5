/// Why a connection ended: who, where in its life, and what. Each connection has exactly one; the first cause wins.
package struct TerminationReason: Hashable, Sendable {
    package var party: TerminationParty
    package var phase: TerminationPhase
    package var cause: TerminationCause

    package init(_ party: TerminationParty, _ phase: TerminationPhase, _ cause: TerminationCause) {
        self.party = party
        self.phase = phase
        self.cause = cause
    }

    /// `downstream/relaying/clean`: stable, for metrics. Codes are left out.
    package var name: String {
        "\(self.party.rawValue)/\(self.phase.rawValue)/\(self.cause.name)"
    }
}

extension TerminationReason: CustomStringConvertible {
    /// The name, with the code where there is one: `upstream/relaying/abnormal-close(1011)`.
    package var description: String {
        self.cause.code.map { "\(self.name)(\($0))" } ?? self.name
    }
}
