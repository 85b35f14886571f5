/// A value that is used on one loop only, in a wrapper that may be sent anywhere.
///
/// Code on another thread holds the wrapper and gives the loop work with `execute`; debug builds check each access.
package struct LoopIsolated<Value>: @unchecked Sendable {  // Only the loop's thread reaches the value.
    package let loop: Loop
    @usableFromInline let isolated: Value

    package init(_ value: Value, on loop: Loop) {
        self.loop = loop
        self.isolated = value
    }

    /// On the loop.
    @inlinable package var value: Value {
        self.loop.assertOnLoop()
        return self.isolated
    }

    /// Runs `work` on the loop, as `Loop.execute`. From any thread.
    package func execute(_ work: @escaping @Sendable (Value) -> Void) {
        self.loop.execute { work(self.value) }
    }
}

extension Loop {
    /// Checks in debug builds that the caller may use values confined to this loop: the caller is on the loop's thread, or
    /// no thread runs the loop at the moment, as while a test prepares its connections.
    @inlinable @inline(__always)
    package func assertOnLoop(file: StaticString = #fileID, line: UInt = #line) {
        assert(self.admitsCaller, "not on the loop's thread", file: file, line: line)
    }
}
