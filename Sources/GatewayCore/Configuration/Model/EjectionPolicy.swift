/// When an endpoint is left out for a while. The last endpoint of an upstream is never left out.
package struct EjectionPolicy: Sendable, Equatable {
    /// Failures one after another (connecting, TLS, opening handshake) that eject it, 1 to 1000; `nil` never ejects.
    package var failures: Int? = 5
    /// How long it is left out, 100 ms to 1 day.
    package var duration: Duration = .seconds(30)

    package init() {}
}
