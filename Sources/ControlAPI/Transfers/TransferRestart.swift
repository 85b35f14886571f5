/// POST …:restart: goes on from resume data.
package struct TransferRestart: Codable, Sendable, Equatable, StrictlyRead {
    /// Begins anew, and forgets what was received. Needed where there is no resume data. Default: no.
    package var fromBeginning: Bool?

    package init(
        fromBeginning: Bool? = nil
    ) {
        self.fromBeginning = fromBeginning
    }

    package static let members = [
        "fromBeginning"
    ]
}
