import StreamTransport

/// A ping of the task's user that went out.
struct AwaitedPong {
    let sentAt: MonotonicInstant
    let completion: OutgoingMessages.Completion
}
