/// A pool of idle inflaters and deflaters, which saves their allocation for each message.
///
/// For one thread: each loop has its own.
package final class DeflatePool {
    /// Most idle inflaters, and most idle deflaters.
    package let capacity: Int
    private var inflaters: [Inflater] = []
    private var deflaters: [Deflater] = []

    /// - Parameter capacity: negative counts as 0, which disables pooling.
    package init(capacity: Int = 8) {
        self.capacity = max(capacity, 0)
    }

    package var idleInflaters: Int { self.inflaters.count }
    package var idleDeflaters: Int { self.deflaters.count }

    /// Takes a reset inflater, or creates one.
    /// - Returns: `nil` without memory for a new one.
    package func takeInflater(format: DeflateFormat, windowBits: Int = 15) -> Inflater? {
        let fits = self.inflaters.lastIndex { $0.format == format && $0.windowBits == windowBits }
        if let fits { return self.inflaters.remove(at: fits) }
        return Inflater(format: format, windowBits: windowBits)
    }

    /// Takes a reset deflater, or creates one.
    /// - Returns: `nil` without memory for a new one.
    package func takeDeflater(_ settings: DeflaterSettings) -> Deflater? {
        let fits = self.deflaters.lastIndex { $0.settings == settings }
        if let fits { return self.deflaters.remove(at: fits) }
        return Deflater(settings)
    }

    /// Returns an inflater to the pool; the caller must not use it any more.
    package func recycle(_ inflater: Inflater) {
        Self.keep(inflater, in: &self.inflaters, upTo: self.capacity) { $0.reset() }
    }

    /// Returns a deflater to the pool; the caller must not use it any more.
    package func recycle(_ deflater: Deflater) {
        Self.keep(deflater, in: &self.deflaters, upTo: self.capacity) { $0.reset() }
    }

    /// Evicts the context that is idle the longest, because recent settings are the likeliest to be requested again.
    private static func keep<Context>(
        _ context: Context, in list: inout [Context], upTo capacity: Int, reset: (Context) -> Void
    ) {
        guard capacity > 0 else { return }
        if list.count >= capacity { list.removeFirst() }
        reset(context)
        list.append(context)
    }
}
