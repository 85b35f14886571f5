/// Inflaters and deflaters between two uses, so that a message which needs one for a moment does not pay for its
/// memory.
///
/// For one thread: each loop has its own. What is handed in is reset, and freed where the pool is full already.
package final class DeflatePool {
    /// Most inflaters, and most deflaters, kept for reuse.
    package let capacity: Int
    private var inflaters: [Inflater] = []
    private var deflaters: [Deflater] = []

    /// - Parameter capacity: negative counts as 0, which keeps nothing.
    package init(capacity: Int = 8) {
        self.capacity = max(capacity, 0)
    }

    /// How many are waiting for reuse.
    package var idleInflaters: Int { self.inflaters.count }
    /// How many are waiting for reuse.
    package var idleDeflaters: Int { self.deflaters.count }

    /// An inflater at the start of a stream.
    /// - Returns: `nil` when there is no memory for a new one.
    package func takeInflater(format: DeflateFormat, windowBits: Int = 15) -> Inflater? {
        let fits = self.inflaters.lastIndex { $0.format == format && $0.windowBits == windowBits }
        if let fits { return self.inflaters.remove(at: fits) }
        return Inflater(format: format, windowBits: windowBits)
    }

    /// A deflater at the start of a stream.
    /// - Returns: `nil` when there is no memory for a new one.
    package func takeDeflater(_ settings: DeflaterSettings) -> Deflater? {
        let fits = self.deflaters.lastIndex { $0.settings == settings }
        if let fits { return self.deflaters.remove(at: fits) }
        return Deflater(settings)
    }

    /// Hands an inflater in; it must not be used by its former owner any more.
    package func recycle(_ inflater: Inflater) {
        Self.keep(inflater, in: &self.inflaters, upTo: self.capacity) { $0.reset() }
    }

    /// Hands a deflater in; it must not be used by its former owner any more.
    package func recycle(_ deflater: Deflater) {
        Self.keep(deflater, in: &self.deflaters, upTo: self.capacity) { $0.reset() }
    }

    /// What lies unused the longest makes room: the settings asked for now are the likeliest to be asked for again.
    private static func keep<Context>(
        _ context: Context, in list: inout [Context], upTo capacity: Int, reset: (Context) -> Void
    ) {
        guard capacity > 0 else { return }
        if list.count >= capacity { list.removeFirst() }
        reset(context)
        list.append(context)
    }
}
