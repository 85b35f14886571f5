import Synchronization

/// A completion handler that was lent out: takes the first answer, from any thread, and ignores all others.
final class OnceAnswer<Answer: Sendable>: Sendable {
    private let completion: Mutex<(@Sendable (Answer) -> Void)?>

    init(_ completion: @escaping @Sendable (Answer) -> Void) {
        self.completion = Mutex(completion)
    }

    func callAsFunction(_ answer: Answer) {
        let completion = self.completion.withLock { completion in
            defer { completion = nil }
            return completion
        }
        completion?(answer)
    }
}
