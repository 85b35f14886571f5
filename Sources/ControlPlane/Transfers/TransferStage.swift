/// Where a transfer is in its life.
enum TransferStage: String, CaseIterable, Sendable {
    /// For its body, which another request brings.
    case waiting
    case suspended
    case running
    case cancelling
    /// Everything is there, and is being put in its place.
    case saving
    case finished
    case failed
    case cancelled

    var isOver: Bool {
        switch self {
        case .waiting, .suspended, .running, .cancelling, .saving: false
        case .finished, .failed, .cancelled: true
        }
    }
}
