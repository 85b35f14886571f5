/// Something that belongs to the event loop of a session, and is touched only there.
final class LoopState<Value>: @unchecked Sendable {
    var value: Value

    init(_ value: Value) {
        self.value = value
    }
}
