import ByteKernels
import StreamTransport
import Synchronization
import WebSocketProtocol
import WireText

/// The client's opening handshake, on the loop (RFC 6455 §4.1).
extension WebSocketTask {
    /// Bytes of a refusal's body that are kept.
    private static let responseBodyLimit = 16 << 10
    /// Time for the body of a refusal.
    private static let refusalBodyTimeout = Duration.seconds(1)

    /// Gives a task its opening that was made without, and starts it unless it is suspended.
    package func open(_ opening: ClientOpening) {
        self.loop.assertOnLoop()
        guard self.machine.isOpening, self.client == nil else { return }
        self.client = OpeningState(opening)
        if !self.isSuspended { self.resumeOnLoop() }
    }

    package func resumeOnLoop() {
        self.loop.assertOnLoop()
        self.endSuspension()
        guard self.machine.isOpening, let client = self.client, client.connecting == nil, self.transport == nil,
            !client.isAwaitingDecision
        else { return }
        self.record.state = .running
        client.connecting = TransportOpening(
            client.opening.target, on: self.loop, connected: { self.record.isConnected = true }
        ) { result in
            client.connecting = nil
            switch result {
            case .success(let transport): self.sendRequest(on: transport, client)
            case .failure(let failure):
                self.failure = TaskFailure(failure)
                self.finish()
            }
        }
    }

    private func sendRequest(on transport: any Transport, _ client: OpeningState) {
        self.adopt(transport)
        client.nonce = self.loop.system.randomWords(2).flatMap { word in
            (0..<8).map { UInt8(truncatingIfNeeded: word >> UInt64(8 * $0)) }
        }
        let request = client.opening.handshake.rendered(nonce: client.nonce)
        request.withRawSpan { transport.write($0) }
        client.opening.target.watch?(.requested(bytes: request.count))
        self.loop.arm(self.timer, after: self.options.handshakeTimeout, target: self)
        transport.resumeReading()
    }

    func responseReceived(_ bytes: inout MutableRawSpan) -> Int {
        guard let client = self.client, var parser = client.parser else { return self.collectBody(bytes.bytes) }
        var used = 0
        do throws(HeadViolation) {
            while let head = try parser.parse(bytes.bytes, consumed: &used) {
                guard head.isInterim else {
                    client.parser = nil
                    client.opening.target.watch?(.answered(bytes: client.headBytes + used))
                    self.responseHeadReceived(head)
                    break
                }
            }
        } catch {
            self.endOpening(.protocolViolation(closeCode: 1002, error.explanation))
            return bytes.byteCount
        }
        client.headBytes += used
        if client.parser != nil { client.parser = parser }
        // The rest belongs to the next reader, if any.
        if client.isAwaitingDecision { return used }
        if self.machine.isOpening, used < bytes.byteCount, client.parser == nil {
            return used + self.collectBody(bytes.bytes.extracting(used..<bytes.byteCount))
        }
        guard self.machine.isOpen, used < bytes.byteCount else { return used }
        // Frames that came with the response; a relay that is not ready yet gets them when it resumes.
        var rest = bytes._mutatingExtracting(used..<bytes.byteCount)
        return used + self.processInput(&rest)
    }

    private func responseHeadReceived(_ head: ResponseHead) {
        self.publish { $0.response = head }
        guard let client = self.client else { return }
        switch client.opening.handshake.check(head, nonce: client.nonce) {
        case .success(let agreement):
            self.client = nil
            self.publish { $0.subprotocol = agreement.subprotocol }
            let policy = client.opening.deflate ?? DeflatePolicy()
            self.opened(agreement.deflate.map { NegotiatedDeflate($0, policy: policy) })
        case .failure(.refused(let refusal)):
            guard let refusalHandler = client.opening.judge else { return self.refused(refusal) }
            self.submit(refusal, to: refusalHandler, client)
        case .failure(.invalid(_, let violation)):
            self.endOpening(.protocolViolation(closeCode: 1002, violation.explanation))
        }
    }

    private func refused(_ refusal: ResponseHead) {
        self.failure = .handshakeRefused(status: refusal.status)
        // The body says why; as much of it as fits is kept until it ends or the deadline comes.
        let body = RefusalBody(refusal)
        guard !body.isComplete else { return self.endOpening(.handshakeRefused(status: refusal.status)) }
        self.client?.refusalBody = body
        self.loop.arm(self.timer, after: min(self.options.handshakeTimeout, Self.refusalBodyTimeout), target: self)
    }

    /// Waits for the judgement without reading on, and without blaming the server for the time that takes.
    private func submit(_ refusal: ResponseHead, to judge: ClientOpening.Judge, _ client: OpeningState) {
        client.isAwaitingDecision = true
        self.loop.disarm(self.timer)
        self.transport?.pauseReading()
        // That the server ends the connection meanwhile is its right.
        self.transport?.consumer = nil
        let opening = LoopIsolated((task: self, client: client), on: self.loop)
        judge(refusal) { next in
            opening.execute { $0.task.refusalJudged(refusal, next, $0.client) }
        }
    }

    private func refusalJudged(_ refusal: ResponseHead, _ opening: ClientOpening?, _ client: OpeningState) {
        guard self.machine.isOpening, self.client === client, client.isAwaitingDecision else { return }
        client.isAwaitingDecision = false
        guard let opening else {
            self.refused(refusal)
            guard self.machine.isOpening, let transport = self.transport else { return }
            transport.consumer = self
            return transport.resumeReading()
        }
        self.leaveTransport()
        self.client = OpeningState(opening)
        if !self.isSuspended { self.resumeOnLoop() }
    }

    /// Another connection takes the place of this one, of which nothing more is wanted.
    func leaveTransport() {
        let transport = self.transport.take()
        transport?.consumer = nil
        transport?.close(linger: .zero)
    }

    private func collectBody(_ bytes: RawSpan) -> Int {
        guard var body = self.client?.refusalBody else { return bytes.byteCount }
        var isFull = false
        self.publish { published in
            body.read(bytes) { content in
                let room = Self.responseBodyLimit - published.responseBody.count
                published.responseBody.append(content.extracting(0..<min(room, content.byteCount)))
            }
            isFull = published.responseBody.count >= Self.responseBodyLimit
        }
        self.client?.refusalBody = body
        if isFull || body.isComplete { self.endOpening(self.failure ?? .ended) }
        return bytes.byteCount
    }

    func endOpening(_ failure: TaskFailure) {
        self.failure = self.failure ?? failure
        self.transport?.close(linger: .seconds(1))
        self.finish()
    }

    func openingInterrupted() {
        self.endOpening(.connectionLost(TransportError(missing: .openingAnswer)))
    }

    func openingTimedOut() {
        self.failure = self.failure ?? .timedOut
        self.transport?.reset()
        self.finish()
    }
}

/// State that a client's task needs only until it is open; separate, so that an open one does not carry it.
final class OpeningState {
    let opening: ClientOpening
    var connecting: TransportOpening?
    /// `nil` once the response's head is read.
    var parser: ResponseParser? = ResponseParser()
    /// The 16 random bytes of Sec-WebSocket-Key (RFC 6455 §4.1).
    fileprivate var nonce: [UInt8] = []
    /// Bytes of the response's heads received so far.
    fileprivate var headBytes = 0
    /// Where the body of a refusal is read to.
    fileprivate var refusalBody: RefusalBody?
    /// Whether the judge's decision about the response is pending; nothing is read meanwhile.
    var isAwaitingDecision = false

    init(_ opening: ClientOpening) {
        self.opening = opening
    }
}

/// Finds the content and the end of a refusal's body (RFC 9112 §6.3).
private struct RefusalBody {
    private enum Rest {
        case bytes(Int)
        case chunks(ChunkReader)
        case untilEnd
    }

    /// Most consecutive bytes of chunk framing.
    private static let framingLimit = 16 << 10

    private var rest: Rest

    init(_ head: ResponseHead) {
        let codings = head.fields["Transfer-Encoding"]
        if head.status == 204 || head.status == 304 {
            self.rest = .bytes(0)
        } else if let codings {
            self.rest =
                codings.matchesIgnoringCase("chunked") ? .chunks(ChunkReader(limit: Self.framingLimit)) : .untilEnd
        } else {
            self.rest = head.fields["Content-Length"].flatMap { Int($0) }.map { .bytes(max(0, $0)) } ?? .untilEnd
        }
    }

    var isComplete: Bool { if case .bytes(0) = self.rest { true } else { false } }

    /// - Parameter add: called with each piece of content.
    mutating func read(_ bytes: RawSpan, _ add: (RawSpan) -> Void) {
        switch self.rest {
        case .untilEnd: add(bytes)
        case .bytes(let count):
            let taken = min(count, bytes.byteCount)
            add(bytes.extracting(0..<taken))
            self.rest = .bytes(count - taken)
        case .chunks(var reader): self.read(bytes, with: &reader, add)
        }
    }

    private mutating func read(_ bytes: RawSpan, with reader: inout ChunkReader, _ add: (RawSpan) -> Void) {
        var offset = 0
        while offset < bytes.byteCount {
            // What cannot be read, and what follows the last chunk, says nothing of the refusal.
            guard let step = try? reader.next(bytes, from: offset) else { return self.rest = .bytes(0) }
            switch step {
            case .more: offset = bytes.byteCount
            case .trailers: return self.rest = .bytes(0)
            case .content(let range):
                add(bytes.extracting(range))
                offset = range.upperBound
            }
        }
        self.rest = .chunks(reader)
    }
}

/// How a client's WebSocket is opened: the target and the request.
package struct ClientOpening: Sendable {
    /// Decides about a response that is not 101: with another opening the task connects there, with its queues kept;
    /// with `nil` the task fails with the refusal. Call the completion once, from any thread.
    package typealias Judge = @Sendable (ResponseHead, @escaping @Sendable (ClientOpening?) -> Void) -> Void

    package var target: OpeningTarget
    package var handshake: ClientHandshake
    /// How our messages are compressed if the server agrees to one of the handshake's offers.
    package var deflate: DeflatePolicy?
    /// `nil` accepts every refusal.
    package var judge: Judge?

    package init(target: OpeningTarget, handshake: ClientHandshake, deflate: DeflatePolicy? = nil) {
        self.target = target
        self.handshake = handshake
        self.deflate = deflate
    }
}

/// permessage-deflate as the opening handshake agreed on it, with our own way of compressing.
package struct NegotiatedDeflate: Sendable {
    package let parameters: PermessageDeflateParameters
    package let policy: DeflatePolicy

    package init(_ parameters: PermessageDeflateParameters, policy: DeflatePolicy) {
        self.parameters = parameters
        self.policy = policy
    }
}

extension MaskingKeys {
    /// The loop's keys, 64 at a time from the kernel's generator: a system call per key would cost more than the frame.
    static func shared(on loop: Loop) -> MaskingKeys {
        let system = loop.system
        return loop.local(MaskingKeys.self) {
            MaskingKeys { Self.keys(of: system.randomWords(32)) }
        }
    }

    /// Two keys from each word. If the system returns no random words, keys would be predictable: then one comes from
    /// the standard library's generator, which is cryptographic too.
    package static func keys(of words: [UInt64]) -> (first: UInt32, more: [UInt32]) {
        var keys: [UInt32] = []
        keys.reserveCapacity(words.count * 2)
        for word in words {
            keys.append(UInt32(truncatingIfNeeded: word))
            keys.append(UInt32(truncatingIfNeeded: word >> 32))
        }
        let first = keys.popLast() ?? UInt32.random(in: .min ... .max)
        return (first, keys)
    }
}
