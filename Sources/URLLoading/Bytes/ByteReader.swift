import Foundation

/// Who reads a channel: when it goes away, the channel is abandoned. What two readers of one channel get is shared out
/// between them, and the first to go ends it for both.
@usableFromInline
package final class ByteReader: Sendable {
    private let consumer: ByteConsumer

    package init(_ consumer: ByteConsumer) {
        self.consumer = consumer
    }

    deinit {
        self.consumer.channel.abandon()
    }

    /// The next bytes, at least one; `nil` at the end.
    ///
    /// Cancelling the awaiting task abandons the channel.
    /// - Throws: what the loader ended with; `URLError.cancelled` after a cancellation.
    package func nextRun(isolation actor: isolated (any Actor)? = #isolation) async throws -> [UInt8]? {
        let channel = self.consumer.channel
        if Task.isCancelled { channel.abandon() }
        switch channel.take() {
        case .run(let run): return run
        case .ended(let error):
            if let error { throw error }
            return nil
        case .later: break
        }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation(isolation: actor) { channel.wait($0) }
        } onCancel: {
            channel.abandon()
        }
    }
}
