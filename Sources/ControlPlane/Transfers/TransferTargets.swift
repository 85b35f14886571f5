import StreamTransport

/// Where transfers may lead.
struct TransferTargets: Sendable {
    /// Why a URL may not be asked for, before its name is looked up; also of each redirect.
    var refusal: @Sendable (_ scheme: String, _ host: String, _ port: UInt16) -> ControlProblem? = { _, _, _ in nil }
    /// Whether an address may be connected to on behalf of a host.
    var admits: @Sendable (SocketAddress, _ host: String) -> Bool = { _, _ in true }
}
