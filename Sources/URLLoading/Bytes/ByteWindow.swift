import HTTPTransport

/// Lets more of a content come when whoever reads its bytes has room for it again.
final class ByteWindow: Sendable {
    private let waiting: AwaitedTask

    init(_ waiting: AwaitedTask) {
        self.waiting = waiting
    }

    func wanted() {
        guard let transfer = (self.waiting.task as? URLSessionDataTask)?.transfer else { return }
        transfer.core.pool.execute { transfer.channelHasRoom() }
    }
}
