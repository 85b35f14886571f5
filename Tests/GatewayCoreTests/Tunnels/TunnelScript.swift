import GatewayConfiguration
import GatewayCore
import Testing

/// The steps of a tunnel's life: the events, and the expected actions downstream and upstream.
struct TunnelScript: Sendable, CustomTestStringConvertible {
    typealias Step = (TunnelEvent, SideAction?, SideAction?)

    let testDescription: String
    let setting: TunnelMachineTests.Setting
    let steps: [Step]
    let reason: String?

    init(
        _ name: String, _ downstream: SideKind, _ upstream: SideKind, _ halfClose: HalfClose, _ steps: [Step],
        _ reason: String?
    ) {
        self.testDescription = name
        self.setting = .init(downstream: downstream, upstream: upstream, halfClose: halfClose)
        self.steps = steps
        self.reason = reason
    }

    static let all =
        Self.betweenStreams + Self.streamToWebSocket + Self.webSocketToStream + Self.betweenWebSockets
        + Self.fromAbove

    private static func code(_ code: UInt16?) -> CloseSignal { CloseSignal(code: code) }

    private static let betweenStreams: [TunnelScript] =
        HalfClose.allCases.map { policy in
            TunnelScript(
                "between streams a half-close is always carried, \(policy)", .stream, .stream, policy,
                [
                    (.finished(.downstream), nil, .finishOutput),
                    (.finished(.upstream), .close, .close),
                    (.closed(.upstream), nil, nil),
                    (.closed(.downstream), nil, nil),
                ], "downstream/relaying/clean")
        } + [
            TunnelScript(
                "a reset goes through", .stream, .stream, .hold,
                [(.fault(.upstream, .reset), .reset, nil), (.closed(.downstream), nil, nil)], "upstream/relaying/reset"),
            TunnelScript(
                "a reset after the half-close is still a reset", .stream, .stream, .close,
                [(.finished(.downstream), nil, .finishOutput), (.fault(.upstream, .reset), .reset, nil)],
                "upstream/relaying/reset"),
            TunnelScript(
                "truncated TLS is a reset", .stream, .stream, .close, [(.fault(.downstream, .truncated), nil, .reset)],
                "downstream/relaying/truncated"),
            TunnelScript(
                "a loss while ending cleanly does not change the reason", .stream, .stream, .close,
                [
                    (.finished(.upstream), .finishOutput, nil), (.finished(.downstream), .close, .close),
                    (.fault(.downstream, .reset), nil, nil), (.closed(.upstream), nil, nil),
                ], "upstream/relaying/clean"),
        ]

    private static let streamToWebSocket: [TunnelScript] = [
        TunnelScript(
            "hold: no Close when the raw client finishes; it gets everything until the other side ends",
            .stream, .webSocket, .hold,
            [(.finished(.downstream), nil, nil), (.close(.upstream, 1000), .close, .answerClose(.normal))],
            "upstream/relaying/clean(1000)"),
        TunnelScript(
            "hold: the other side's loss is a reset", .stream, .webSocket, .hold,
            [(.finished(.downstream), nil, nil), (.finished(.upstream), .reset, nil)],
            "upstream/relaying/truncated"),
        TunnelScript(
            "close: finish sending, then the closing handshake", .stream, .webSocket, .close,
            [
                (.finished(.downstream), nil, .sendClose(.normal)), (.close(.upstream, 1000), .close, .close),
                (.closed(.upstream), nil, nil), (.closed(.downstream), nil, nil),
            ], "downstream/closing/clean(1000)"),
        TunnelScript(
            "close: an answer that names a fault is no clean end", .stream, .webSocket, .close,
            [(.finished(.downstream), nil, .sendClose(.normal)), (.close(.upstream, 1011), .reset, .close)],
            "upstream/closing/abnormal-close(1011)"),
        TunnelScript(
            "close: no answer is no clean end", .stream, .webSocket, .close,
            [(.finished(.downstream), nil, .sendClose(.normal)), (.closingTimedOut, .reset, .reset)],
            "upstream/closing/closing-timeout"),
        TunnelScript(
            "close: a connection lost before the answer is no clean end", .stream, .webSocket, .close,
            [(.finished(.downstream), nil, .sendClose(.normal)), (.finished(.upstream), .reset, nil)],
            "upstream/closing/truncated"),
        TunnelScript(
            "signal: the end mark goes out, the other's comes in, then the closing handshake",
            .stream, .webSocket, .signal,
            [
                (.finished(.downstream), nil, .sendEndMark), (.endMark(.upstream), .close, .sendClose(.normal)),
                (.close(.upstream, 1000), nil, .close),
            ], "downstream/relaying/clean"),
        TunnelScript(
            "signal: the WebSocket finishes first", .stream, .webSocket, .signal,
            [
                (.endMark(.upstream), .finishOutput, nil),
                (.finished(.downstream), .close, .sendEndMarkThenClose(.normal)),
            ], "upstream/relaying/clean"),
        TunnelScript(
            "a reset of the stream is 1011", .stream, .webSocket, .hold,
            [(.fault(.downstream, .reset), nil, .fail(.otherSideFailed)), (.closed(.upstream), nil, nil)],
            "downstream/relaying/reset"),
        TunnelScript(
            "truncated TLS is 1011", .stream, .webSocket, .close,
            [(.fault(.downstream, .truncated), nil, .fail(.otherSideFailed))], "downstream/relaying/truncated"),
        TunnelScript(
            "a stream that breaks the framing is reset, and its code goes to the WebSocket", .stream, .webSocket,
            .close,
            [(.violated(.downstream, 1007), .reset, .fail(code(1007)))], "downstream/relaying/violation(1007)"),
        TunnelScript(
            "a reset after finishing is no clean end either", .stream, .webSocket, .close,
            [(.finished(.downstream), nil, .sendClose(.normal)), (.fault(.downstream, .reset), nil, .reset)],
            "downstream/closing/reset"),
    ]

    private static let webSocketToStream: [TunnelScript] = [
        TunnelScript(
            "a regular Close finishes the stream and is answered", .webSocket, .stream, .close,
            [(.close(.downstream, nil), .answerClose(code(nil)), .close)], "downstream/relaying/clean"),
        TunnelScript(
            "a page that goes away finishes the stream", .webSocket, .stream, .hold,
            [(.close(.downstream, 1001), .answerClose(.goingAway), .close)], "downstream/relaying/clean(1001)"),
        TunnelScript(
            "a missing Close is a reset", .webSocket, .stream, .close, [(.finished(.downstream), nil, .reset)],
            "downstream/relaying/truncated"),
        TunnelScript(
            "a message too long is 1009 to its sender and a reset to the stream", .webSocket, .stream, .close,
            [(.violated(.downstream, 1009), .fail(code(1009)), .reset)], "downstream/relaying/violation(1009)"),
        TunnelScript(
            "the stream finishes, the WebSocket sends on and then answers", .webSocket, .stream, .close,
            [(.finished(.upstream), .sendClose(.normal), nil), (.close(.downstream, 1000), .close, .close)],
            "upstream/closing/clean(1000)"),
        TunnelScript(
            "no pong", .webSocket, .stream, .close, [(.unresponsive(.downstream), .reset, .reset)],
            "downstream/relaying/unresponsive"),
    ]

    private static let betweenWebSockets: [TunnelScript] = [
        TunnelScript(
            "code and reason go end to end, and so does the answer", .webSocket, .webSocket, .close,
            [
                (.close(.downstream, 4000), nil, .sendClose(code(4000))),
                (.close(.upstream, 4001), .answerClose(code(4001)), .close),
            ], "downstream/relaying/clean(4000)"),
        TunnelScript(
            "both close at once", .webSocket, .webSocket, .close,
            [
                (.close(.upstream, 1000), .sendClose(.normal), nil),
                (.close(.downstream, 1001), .close, .answerClose(.goingAway)),
            ], "upstream/relaying/clean(1000)"),
        TunnelScript(
            "an answer that never comes is given by us", .webSocket, .webSocket, .close,
            [
                (.close(.downstream, 1000), nil, .sendClose(.normal)),
                (.closingTimedOut, .answerClose(.normal), .reset),
            ], "downstream/relaying/clean(1000)"),
        TunnelScript(
            "who closed may leave before the answer", .webSocket, .webSocket, .close,
            [
                (.close(.downstream, 1000), nil, .sendClose(.normal)), (.finished(.downstream), nil, nil),
                (.close(.upstream, 1000), nil, .close),
            ], "downstream/relaying/clean(1000)"),
        TunnelScript(
            "a missing Close is 1011", .webSocket, .webSocket, .close,
            [(.finished(.upstream), .fail(.otherSideFailed), nil)], "upstream/relaying/truncated"),
        TunnelScript(
            "1009 to the sender, 1011 to the other side", .webSocket, .webSocket, .close,
            [(.violated(.downstream, 1009), .fail(code(1009)), .fail(.otherSideFailed))],
            "downstream/relaying/violation(1009)"),
        TunnelScript(
            "an empty message is just a message", .webSocket, .webSocket, .signal, [(.endMark(.downstream), nil, nil)],
            nil),
    ]

    private static let fromAbove: [TunnelScript] = [
        TunnelScript(
            "drain: 1001, and the stream gets what was under way", .webSocket, .stream, .close,
            [(.drain, .sendClose(.goingAway), nil), (.close(.downstream, 1001), .close, .close)],
            "operator/relaying/drained"),
        TunnelScript(
            "drain between WebSockets: 1001 to one, then to the other", .webSocket, .webSocket, .close,
            [
                (.drain, .sendClose(.goingAway), nil), (.close(.downstream, 1000), .close, .sendClose(.goingAway)),
                (.close(.upstream, 1001), nil, .close),
            ], "operator/relaying/drained"),
        TunnelScript(
            "drain leaves two streams alone until the deadline", .stream, .stream, .close,
            [(.drain, nil, nil), (.abandoned, .reset, .reset)], "operator/relaying/stopped"),
        TunnelScript(
            "idle: 1001 and a reset", .webSocket, .stream, .close,
            [(.idle, .fail(CloseSignal(code: 1001, reason: Array("idle timeout".utf8))), .reset)],
            "gateway/relaying/idle-timeout"),
        TunnelScript(
            "a command ends two streams in order", .stream, .stream, .hold, [(.stop, .close, .close)],
            "operator/relaying/stopped"),
    ]
}
