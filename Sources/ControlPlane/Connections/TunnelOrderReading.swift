import ControlAPI
import GatewayCore

/// Makes an order of a tunnel that a client asks for, or says what is wrong with it.
package struct TunnelOrderReading {
    private static let year = 365 * 86_400_000.0

    package let request: TunnelRequest

    package init(_ request: TunnelRequest) {
        self.request = request
    }

    /// - Parameter guarded: stands between each side and the addresses that it leads to.
    package func order(
        _ guarded: (TunnelSide, inout ClientOrder) -> Void = { _, _ in }
    ) throws(ControlProblem) -> ClientTunnelOrder {
        let settings = try self.settings()
        var downstream = try Self.half(self.request.downstream, .downstream)
        var upstream = try Self.half(self.request.upstream, .upstream)
        guarded(.downstream, &downstream)
        guarded(.upstream, &upstream)
        return ClientTunnelOrder(downstream: downstream, upstream: upstream, settings: settings)
    }

    private static func half(_ request: OpenRequest, _ side: TunnelSide) throws(ControlProblem) -> ClientOrder {
        do throws(ControlProblem) {
            return try ClientOrderReading(request).order()
        } catch {
            throw error.inside("/\(side.rawValue)")
        }
    }

    private func settings() throws(ControlProblem) -> TunnelSettings {
        var settings = TunnelSettings()
        settings.framing = try Self.word(self.request.framing, "/framing") ?? settings.framing
        settings.halfClose = try Self.word(self.request.halfClose, "/halfClose") ?? settings.halfClose
        if settings.halfClose == .signal, !settings.framing.canMarkEnd {
            throw .invalid(
                "/halfClose",
                "halfClose is to be hold or close: an empty message is data in \(settings.framing.rawValue) framing.")
        }
        settings.idleTimeout = try Self.life(self.request.idleTimeoutMs, "/idleTimeoutMs", settings.idleTimeout)
        settings.maximumAge = try Self.life(self.request.maximumAgeMs, "/maximumAgeMs", settings.maximumAge)
        return settings
    }

    private static func word<Choice: CaseIterable & RawRepresentable<String>>(
        _ text: String?, _ pointer: String
    ) throws(ControlProblem) -> Choice? {
        guard let text else { return nil }
        guard let choice = Choice(rawValue: text) else {
            let known = Choice.allCases.map(\.rawValue).joined(separator: ", ")
            throw .invalid(pointer, "\(pointer.dropFirst()) is to be one of \(known).")
        }
        return choice
    }

    /// 0 is never.
    private static func life(
        _ milliseconds: Double?, _ pointer: String, _ standard: Duration?
    ) throws(ControlProblem) -> Duration? {
        guard let milliseconds else { return standard }
        guard milliseconds != 0 else { return nil }
        return try ClientOrderReading.time(milliseconds, pointer, in: 1000...Self.year)
    }
}
