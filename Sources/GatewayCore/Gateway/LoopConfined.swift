import StreamTransport

/// Carries something that belongs to a loop's thread; touched only there.
struct LoopConfined<Value>: @unchecked Sendable {
    let value: Value

    init(_ value: Value) {
        self.value = value
    }
}

extension Loop {
    /// Runs `body` on the loop and returns what it gave.
    func perform<R: Sendable>(_ body: @escaping @Sendable () -> R) async -> R {
        await withCheckedContinuation { continuation in
            self.execute { continuation.resume(returning: body()) }
        }
    }
}
