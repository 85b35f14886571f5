/// Keys of `keep-alive`.
package enum KeepAliveKey: String, CaseIterable, Sendable {
    case idle
    case interval
    case probes
}
