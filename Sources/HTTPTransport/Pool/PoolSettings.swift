import StreamTransport

/// The terms of a pool.
package struct PoolSettings: Sendable {
    package typealias Resolve =
        @Sendable (String, UInt16, @escaping @Sendable (Result<[SocketAddress], ResolutionFailure>) -> Void) -> Void

    /// Connections to one server at a time, those being opened included; upgraded ones do not count. At least 1.
    /// Default: 6.
    package var connectionsPerHost = 6
    /// How long a connection rests before it is closed. Default: 60 seconds.
    package var idleTimeout: Duration = .seconds(60)
    /// Connections that rest, in all; the one that rested longest makes room. Default: 64.
    package var idleLimit = 64
    package var limits = MessageLimits()
    /// Looks a name up; answers once, from any thread. Default: the system's resolver, on threads of its own.
    package var resolve: Resolve = { ResolverThreads.shared.resolve($0, port: $1, answer: $2) }
    /// Whether an address may be connected to on behalf of a host, as it stands in the URL; asked for each address before
    /// it is tried, whether it was looked up or given in digits. From any thread. Default: all of them.
    package var admits: @Sendable (SocketAddress, _ host: String) -> Bool = { _, _ in true }

    package init() {}
}
