/// HTTP transfers that the control plane makes: what they may touch and hold.
package struct TransferSettings: Sendable, Equatable {
    /// Absolute paths of the directories in which files may be sent from and received into; none means no files.
    package var directories: [String] = []
    /// Transfers that are known, those that are over included; the one that ended first makes room. 1 to 10 000.
    package var maximumTransfers = 256
    /// Transfers that are not over. 1 to 1000.
    package var maximumRunning = 64
    /// Bytes of content that one transfer keeps in memory, sent and received apart; beyond it the transfer fails. 1 KiB
    /// to 1 GiB.
    package var maximumBody = 16 << 20
    /// Bytes of content in memory of all transfers together. 1 KiB to 16 GiB.
    package var maximumMemory = 64 << 20
    package var credentials: [TransferCredential] = []

    package init() {}

    package func credential(named name: String) -> TransferCredential? {
        self.credentials.first { $0.name == name }
    }
}
