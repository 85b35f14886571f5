/// Keys of `control.transfers`.
package enum TransferKey: String, CaseIterable, Sendable {
    case directories
    case maxTransfers = "max-transfers"
    case maxRunning = "max-running"
    case maxBody = "max-body"
    case maxMemory = "max-memory"
    case credentials
}
