extension ResolverThreads {
    /// Looks `host` up for somebody without a loop of this kind.
    ///
    /// - Parameter answer: called once: on one of the threads, or at once if too many lookups wait already. It must not
    ///   block.
    package func resolve(
        _ host: String, port: UInt16,
        answer: @escaping @Sendable (Result<[SocketAddress], ResolutionFailure>) -> Void
    ) {
        if !self.submit(Lookup(host: host, port: port, answer: answer)) { answer(.failure(.tooManyLookups)) }
    }
}
