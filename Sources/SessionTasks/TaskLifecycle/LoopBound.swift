/// Carries something that belongs to a loop's thread through code that runs elsewhere; touched only back on the loop.
struct LoopBound<Value>: @unchecked Sendable {
    let value: Value

    init(_ value: Value) {
        self.value = value
    }
}
