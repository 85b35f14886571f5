/// Moves a value that is not `Sendable` to another thread. The sender must not use it afterwards.
///
/// For Foundation's objects and the program's own, such as streams and files, which pass through stored closures and
/// queues that cannot take a `sending` parameter.
struct UncheckedTransfer<Value>: @unchecked Sendable {  // The sender keeps nothing: one thread at a time.
    let value: Value

    init(_ value: Value) {
        self.value = value
    }
}
