import Foundation
import HTTPSemantics
import HTTPTransport
import HTTPTypes
import SessionTasks
import TLSEngine
import WireText

/// Loads a request over HTTP: runs one exchange after another until a response is neither a redirect to follow nor a
/// challenge to answer.
final class HTTPLoad: RequestLoad, @unchecked Sendable {  // Its state is used on the session's executor only.
    enum Step {
        /// The exchange is prepared, or has no response yet.
        case sending
        /// The response may be a redirect or a challenge. The end of its exchange waits for the decision.
        case deciding(HTTPURLResponse, ExchangeEnd?)
        /// The response is the final one. The end of its exchange waits for the content to be decoded.
        case receiving(HTTPURLResponse, ExchangeEnd?)
        case stopped

        var response: HTTPURLResponse? {
            switch self {
            case .deciding(let response, _), .receiving(let response, _): response
            case .sending, .stopped: nil
            }
        }

        var end: ExchangeEnd? {
            switch self {
            case .deciding(_, let end), .receiving(_, let end): end
            case .sending, .stopped: nil
            }
        }
    }

    let core: SessionCore
    let loader: TaskLoader
    /// As the program made it, or as redirects and the delegate changed it.
    var request: URLRequest { didSet { self.isRequestPublished = false } }
    private var isRequestPublished: Bool
    var body: TaskBody
    /// The request's own stream was sent, which can be read once.
    var hasSentBodyStream = false
    private(set) var attempt: HTTPAttempt?
    var step = Step.sending
    /// Incremented by each asynchronous step, so that an outdated answer is recognized.
    private(set) var generation = 0
    /// Where the request goes.
    var origin: HTTPTransport.ServerEndpoint?

    private(set) var redirects = 0
    /// Cookies from a custom cookie storage; `nil` with the standard storage.
    private var cookies: [HTTPCookie]?
    var credentials = RequestCredentials()
    /// The ways to the server that are left, `nil` for the direct one; empty before they are decided on.
    var routes: ArraySlice<ProxyAddress?> = []
    /// Of requests that a proxy forwards.
    var proxyAuthenticator: ProxyAuthenticator?
    /// Of the latest challenge.
    var handshakeConnection = HandshakeConnection(isKept: true)
    /// Keeps the connection while server or proxy authenticate it; otherwise `nil`.
    var lease: ConnectionLease?
    /// The cached response that is being validated.
    var stored: CachedURLResponse?
    /// The condition fields of a cache validation or a resumed download.
    var conditions = HTTPFields() {
        didSet { if self.loader.resumption != nil { self.isRequestPublished = false } }
    }
    var cacheWriter: CacheWriter?
    /// The server has refused the request over HTTP/2 (RFC 9113 §7).
    var requiresHTTP11 = false
    /// How often a server has refused the request, whose body is a stream.
    private var refusals = 0
    /// Another idle connection may have been closed by the server as well.
    private var needsFreshConnection = false
    /// Most repetitions of such a request.
    private static let refusalLimit = 5
    var earlyData = EarlyDataUse.none
    /// Waits for a way to the server of the proxy script.
    var pathWait: PathWait?
    /// Whether a request was sent on a connection.
    var hasConnected = false
    /// Why the delegate rejected the TLS handshake.
    var tlsRefusal: URLError?

    private var decoder: ContentDecoder?
    private var decodedBytes: Int64 = 0
    /// Bytes received since content was last delivered.
    private var wireBytes = 0
    /// The content of the earlier attempt of a download cannot be used.
    var restartsDownload = false
    /// What the server left out of the rest of a download.
    var missingRange: RangeResumption?
    /// Continues the upload after an interruption; `nil` for other requests.
    var upload: UploadTransfer?

    init(_ request: URLRequest, body: TaskBody, for loader: TaskLoader) {
        self.core = loader.core
        self.loader = loader
        self.request = request
        // The request of a resumed download or upload differs from the task's current request.
        self.isRequestPublished = loader.resumption == nil && loader.uploadResumption == nil
        self.body = body
        // A protocol of the program may have redirected the task before.
        self.redirects = loader.record.redirectCount
        self.upload = loader.uploadResumption.map { UploadTransfer(resuming: $0.data) }
    }

    // MARK: RequestLoad

    /// Also called for the target of a redirect.
    func start() {
        self.origin = self.request.url.flatMap { HTTPTransport.ServerEndpoint($0) }
        guard self.origin != nil, self.redirects == 0 || Self.isHTTP(self.request.url) else { return self.failForURL() }
        self.routes = []
        if let upload, upload.machine.phase == .retrievingOffset { return self.beginResumedUpload() }
        self.upload = self.body.isNone ? nil : self.newUpload
        if !self.body.isNone, self.request.httpMethod == "GET" {
            // Foundation asks the delegate for a stream even here; the answer does not matter.
            guard case .stream(nil) = self.body else { return self.failForBodyOfGET() }
            return self.send()
        }
        if let resumption = self.loader.resumption, !self.restartsDownload {
            self.conditions = resumption.range.requestFields
            return self.send()
        }
        self.consultCache()
    }

    func stop() {
        self.upload?.stopPausing(on: self.core)
        self.leaveAttempt(drainingUpTo: 0)
        self.releaseLease()
        if self.core.networkSettings.waits { self.stopWaiting() }
        self.step = .stopped
    }

    func demandChanged() {
        self.continueUploadIfDue()
        if self.decoder != nil { self.decode() }
        if self.core.networkSettings.waits { self.pathWait?.resume() }
        self.attempt?.exchange?.demandChanged()
    }

    func setPriority(_ priority: Float) {
        self.attempt?.exchange?.setPriority(priority)
    }

    func detachConnection() -> Bool {
        // A stream gets the content as it is on the wire.
        self.decoder = nil
        self.cacheWriter = nil
        return self.attempt?.exchange?.detachConnection() ?? false
    }

    var isStopped: Bool {
        if case .stopped = self.step { true } else { false }
    }

    /// Wraps `work` so that it runs on the loop, and only if the load has not moved on to another step.
    func awaiting<Answer: Sendable>(_ work: @escaping @Sendable (HTTPLoad, Answer) -> Void)
        -> @Sendable (Answer) -> Void
    {
        self.generation += 1
        let generation = self.generation
        return { answer in
            self.core.executor.execute {
                guard !self.isStopped, self.generation == generation else { return }
                work(self, answer)
            }
        }
    }

    // MARK: Sending

    /// Sends the request, once its cookies and its body are available.
    func send() {
        guard self.core.executor.pool != nil else { return self.makePool() }
        if self.core.usesProxies, self.routes.isEmpty { return self.chooseRoutes() }
        if let url = self.request.url, self.needsToken(at: url) {
            return self.makeToken(at: url) { $0.sendWithCookies() }
        }
        self.sendWithCookies()
    }

    private func sendWithCookies() {
        self.cookies = nil
        guard self.core.asksForCookies(of: self.request) else { return self.sendBody() }
        self.publishRequest()
        self.core.askForCookies(
            of: self.loader.task,
            self.awaiting { load, cookies in
                load.cookies = cookies
                load.sendBody()
            })
    }

    private func makePool() {
        let send = self.awaiting { (load, _: Bool) in load.send() }
        guard self.core.executor.makePool(then: { send(true) }) else {
            return self.fail(LoadFailure.outOfDescriptors(self.request.url))
        }
    }

    func send(_ body: HTTPTransport.RequestBody) {
        guard let url = self.request.url, let origin = self.origin, let pool = self.core.executor.pool else { return }
        var exchange = ExchangeRequest(origin)
        exchange.origin.socketPath = self.core.requestSettings.unixSocketPath
        exchange.body = body
        exchange.head = self.head(at: url)
        do throws(TLSFailure) {
            if origin.scheme == .https { exchange.secure = try self.secureSetup(origin, exchange.head) }
        } catch {
            return self.fail(LoadFailure.error(ofContext: error, url: url))
        }
        do throws(URLError) {
            exchange.proxy = try self.proxy(for: url, origin, exchange.head)
        } catch {
            return self.fail(error)
        }
        exchange.assumesHTTP2 = self.assumesHTTP2(exchange.head)
        self.lease(&exchange)
        exchange.needsFreshConnection = self.needsFreshConnection
        self.needsFreshConnection = false
        exchange.isMeasured = self.loader.isMeasured
        exchange.priority = self.loader.priority
        exchange.usesPipelining = self.core.requestSettings.usesPipelining || self.request.httpShouldUsePipelining
        let timeout = self.loader.timeout(of: self.request)
        exchange.connectTimeout = timeout
        exchange.idleTimeout = timeout
        exchange.trafficClass = self.core.requestSettings.trafficClass(for: self.request)
        self.prepareNetworks(&exchange)
        if exchange.needsAuthenticatedName, !self.mayAuthenticateName(exchange) { return self.failForForwardedName() }
        self.publishRequest()
        let head = exchange.head
        let running = pool.exchange(exchange, consumer: self)
        self.attempt = HTTPAttempt(
            exchange: running, request: self.loader.isMeasured ? self.request : nil, head: head, body: body,
            startedAt: self.core.requestSettings.cache == nil ? nil : Date())
        running.start()
    }

    /// Makes the request the task's `currentRequest`.
    func publishRequest() {
        guard !self.isRequestPublished else { return }
        self.isRequestPublished = true
        var request = self.request
        // A download that restarts has the conditions of the cache, which are not part of its request.
        if self.loader.resumption != nil, !self.restartsDownload {
            for field in self.conditions { request.setValue(field.value, forHTTPHeaderField: field.name.rawName) }
        }
        self.loader.requestChanged(request)
    }

    /// A builder without the fields that are determined when the request is sent.
    var requestBuilder: RequestBuilder {
        var builder = RequestBuilder(self.core.configuration, self.core.requestSettings)
        builder.isAtOriginalOrigin = self.core.isAtOriginalOrigin(self.request, of: self.loader.task)
        return builder
    }

    func head(at url: URL) -> RequestHead {
        var builder = self.requestBuilder
        builder.hasBody = !self.body.isNone
        let length = self.request.value(forHTTPHeaderField: "Content-Length")
        builder.keepsContentLength = self.body.isStream || self.body.isNone && length == "0"
        builder.conditionalFields = self.upload?.machine.requestFields ?? self.conditions
        builder.cookies = self.cookies
        let method = self.request.httpMethod ?? "GET"
        let target = url.requestTarget
        self.authorize(&builder, url, method: method, target: target, body: self.body)
        let fields = builder.fields(of: self.request, defaults: self.core.defaultFields)
        return RequestHead(method: method, target: target, fields: .init(fields))
    }

    func secureSetup(
        _ origin: HTTPTransport.ServerEndpoint, _ head: RequestHead
    ) throws(TLSFailure) -> SecureSetup {
        let context = self.requiresHTTP11(head) ? self.core.http11TLSContext() : self.core.tlsContext()
        var secure = SecureSetup(context: try context.get())
        secure.resumptionKey = origin.host + ":" + String(origin.port)
        secure.timeout = self.loader.timeout(of: self.request)
        return secure
    }

    func assumesHTTP2(_ head: RequestHead) -> Bool {
        self.core.requestSettings.assumesHTTP2 && !self.requiresHTTP11(head)
    }

    /// HTTP/2 has no upgrades (RFC 9113 §8.6), and its streams share what NTLM and Negotiate authenticate.
    private func requiresHTTP11(_ head: RequestHead) -> Bool {
        self.requiresHTTP11 || head.fields["Upgrade"] != nil || self.credentials.identity != nil
    }

    // MARK: Response

    func headReceived(_ head: ResponseHead, framing: ResponseFraming) {
        guard let url = self.request.url else { return }
        let isCoded = framing != .none && head.fields["Content-Encoding"] != nil
        self.decoder = isCoded ? ContentDecoder(HTTPFields(head.fields.all)) : nil
        guard let response = self.response(head, contentIsEncoded: self.decoder != nil) else { return }
        self.step = .deciding(response, nil)
        self.decodedBytes = 0
        // Before the delegate gets the response.
        if head.fields["Set-Cookie"] != nil {
            self.core.storeCookies(head.fields.all, from: url, request: self.request, of: self.loader.task)
        }
        self.credentials.authorization?.received(
            authenticationLines: head.fields.values("Authentication-Info"))
        self.proxyAuthenticator?.credentials.authorization?.received(
            authenticationLines: head.fields.values("Proxy-Authentication-Info"))
        if head.status == 425, self.repeatTooEarly() { return }
        if head.status == 417, self.repeatWithoutExpectation() { return }
        self.serverAnswered(head.status)
        if head.status != 407 { self.proxyAuthenticator?.credentialAccepted() }
        if head.status == 401, self.authenticate(response, head) { return }
        if head.status == 407, self.authenticateProxy(response, head) { return }
        if self.lease != nil { self.releaseLease() }
        if self.upload != nil, self.handleUploadResponse(response, head) { return }
        // Most responses are final without a look at their fields.
        if head.status < 300, self.loader.resumption == nil { return self.deliverResponse(response) }
        let fields = HTTPFields(head.fields.all)
        if head.status == 304, self.useStored(updatedBy: fields) { return }
        if self.resume(response, fields) { return }
        self.followOrDeliver(response, fields)
    }

    private func response(_ head: ResponseHead, contentIsEncoded: Bool) -> HTTPURLResponse? {
        guard let url = self.request.url else { return nil }
        return HTTPURLResponse(
            url: url, statusCode: head.status,
            httpVersion: head.version.major == 2 ? "HTTP/2" : head.version.minor == 0 ? "HTTP/1.0" : "HTTP/1.1",
            lines: head.fields.all, contentIsEncoded: contentIsEncoded)
    }

    /// Delivers the final response.
    func deliverResponse(_ response: HTTPURLResponse) {
        self.step = .receiving(response, self.step.end)
        self.upload?.machine.end()
        self.startCaching(response)
        self.loader.responseReceived(response)
        self.completeUnlessDecoding()
    }

    // MARK: Redirects

    private func followOrDeliver(_ response: HTTPURLResponse, _ fields: HTTPFields) {
        guard let url = self.request.url else { return }
        switch RedirectStep(response, fields: fields, of: self.request, at: url, count: self.redirects) {
        case .none: self.deliverResponse(response)
        case .refuse(let code, let text): self.fail(code, text)
        case .follow(let next, let keepsContent):
            self.loader.askRedirect(
                response, to: next,
                self.awaiting { load, chosen in
                    guard let chosen else { return load.deliverResponse(response) }
                    if let cache = load.core.requestSettings.cache { load.invalidateCache(response, cache) }
                    let hasOwnContent =
                        chosen.httpBody != next.httpBody || chosen.httpBodyStream !== next.httpBodyStream
                    load.follow(
                        chosen, keepsContent: keepsContent && chosen.httpMethod == next.httpMethod && !hasOwnContent)
                })
        }
    }

    private func follow(_ next: URLRequest, keepsContent: Bool) {
        self.countRedirect()
        self.abandonAttempt()
        if !keepsContent { self.body = TaskBody(next) }
        if !self.hasUsedUpBody, self.loader.restartByProtocol(with: next, body: self.body) { return }
        self.request = next
        self.stored = nil
        self.conditions = [:]
        self.credentials = RequestCredentials()
        self.releaseLease()
        self.requiresHTTP11 = false
        self.start()
    }

    /// Whether the body is a stream that cannot be read again.
    var hasUsedUpBody: Bool {
        if case .stream(nil) = self.body { self.hasSentBodyStream } else { false }
    }

    func countRedirect() {
        self.redirects += 1
        self.loader.countRedirect()
    }

    /// Leaves an exchange whose response is not the final one.
    func abandonAttempt() { self.leaveAttempt(drainingUpTo: 64 << 10) }

    /// - Parameter limit: most bytes of unwanted content to read so that the connection can be reused, 0 for none.
    private func leaveAttempt(drainingUpTo limit: Int) {
        guard let attempt = self.attempt else { return }
        self.attempt = nil
        self.decoder = nil
        // An attempt that was abandoned is a transaction as well.
        self.recordTransaction(attempt, attempt.exchange?.metricsSoFar)
        self.step = .sending
        attempt.exchange?.abandon(drainingUpTo: limit)
    }

    // MARK: Content

    func contentReceived(_ bytes: RawSpan) {
        self.wireBytes += bytes.byteCount
        guard self.decoder == nil else {
            self.decoder?.feed(bytes)
            return self.decode()
        }
        guard self.cacheWriter == nil, let file = self.loader.file else { return self.deliver(Data(copying: bytes)) }
        self.decodedBytes += Int64(bytes.byteCount)
        self.loader.received(bytes, wireBytes: self.takeWireBytes(), into: file)
    }

    private func takeWireBytes() -> Int {
        defer { self.wireBytes = 0 }
        return self.wireBytes
    }

    /// Decodes and delivers as much as the credit allows; pulls more when the decoder has no input left.
    private func decode() {
        do throws(ContentDecodingFailure) {
            while self.loader.demand > 0 {
                guard let piece = try self.decoder?.next() else { return self.decoderDrained() }
                guard !piece.isEmpty else {
                    return self.core.executor.executeLater { if self.decoder != nil { self.decode() } }
                }
                self.deliver(piece)
            }
        } catch {
            self.fail(LoadFailure.error(error, url: self.request.url))
        }
    }

    private func decoderDrained() {
        guard let end = self.step.end else {
            self.attempt?.exchange?.demandChanged()
            return
        }
        if case .finished = end {
            do throws(ContentDecodingFailure) {
                try self.decoder?.finish()
            } catch {
                return self.fail(LoadFailure.error(error, url: self.request.url))
            }
        }
        // The end of a coding, such as a checksum, gives no content.
        self.loader.countReceived(self.takeWireBytes())
        self.complete(end)
    }

    private func deliver(_ data: Data) {
        self.decodedBytes += Int64(data.count)
        self.cacheWriter?.append(data)
        self.loader.received(data, wireBytes: self.takeWireBytes())
    }

    // MARK: Ending

    func exchangeEnded(_ end: ExchangeEnd, metrics: ExchangeMetrics) {
        self.attempt?.exchange = nil
        guard let attempt = self.attempt else { return }
        self.recordTransaction(attempt, metrics)
        switch self.step {
        case .sending:
            guard case .failed(let failure) = end else { return }
            if case .http2(.http11Required) = failure, !self.requiresHTTP11 { return self.sendOverHTTP11() }
            if case .http2(.refused) = failure, self.sendAnotherStream() { return }
            if self.isUploadLostUnread(failure, attempt), self.sendAnotherStream(onFreshConnection: true) { return }
            if self.takeNextRoute(after: failure) { return }
            if self.lease != nil, self.repeatHandshake(after: failure, of: attempt.head) { return }
            if self.upload != nil, self.continueUpload(after: failure, of: attempt) { return }
            self.fail(self.tlsRefusal ?? self.error(failure, attempt))
        case .deciding(let response, _): self.step = .deciding(response, end)
        case .receiving(let response, _):
            self.step = .receiving(response, end)
            if self.decoder == nil { self.complete(end) } else { self.decode() }
        case .stopped: break
        }
    }

    /// The exchange has ended, and another one follows.
    func attemptEnded() { self.attempt = nil }

    private func sendOverHTTP11() {
        self.requiresHTTP11 = true
        self.attemptEnded()
        self.sendBody()
    }

    /// Whether the server closed the idle connection just as the request was written (RFC 9112 §9.3.1). Bodies that can be
    /// read again are repeated by the exchange itself.
    private func isUploadLostUnread(_ failure: ExchangeFailure, _ attempt: HTTPAttempt) -> Bool {
        guard case .connectionLost(let loss) = failure else { return false }
        return loss.wasReused && !loss.responseBegan && !loss.wasRepeated && attempt.head.isIdempotent
    }

    /// Repeats a request that the server has not processed, and whose stream can be read once.
    private func sendAnotherStream(onFreshConnection needsFreshConnection: Bool = false) -> Bool {
        guard case .stream = self.body, self.refusals < Self.refusalLimit else { return false }
        self.refusals += 1
        self.needsFreshConnection = needsFreshConnection
        self.attemptEnded()
        self.sendBody()
        return true
    }

    func completeUnlessDecoding() {
        if self.decoder == nil, let end = self.step.end { self.complete(end) }
    }

    private func complete(_ end: ExchangeEnd) {
        if let response = self.step.response { self.step = .receiving(response, nil) }
        switch end {
        case .detached(let connection): self.loader.detached(connection)
        case .finished:
            if !self.requestsMissingRange() { self.storeInCache { self.finish() } }
        case .failed(let failure): self.fail(LoadFailure.error(failure, url: self.request.url))
        }
    }

    private func recordTransaction(_ attempt: HTTPAttempt, _ metrics: ExchangeMetrics?) {
        guard let request = attempt.request, let metrics else { return }
        self.loader.recordTransaction(
            TransactionRecord(
                request: request.withSentFields(attempt.head), response: self.step.response, source: .network(metrics),
                decodedBytes: self.decodedBytes))
    }

    func fail(_ code: URLError.Code, _ text: String) {
        self.fail(LoadFailure.error(code, url: self.request.url, text: text))
    }

    func fail(_ error: URLError) {
        guard !self.isStopped else { return }
        self.stop()
        self.loader.failed(error)
        if self.upload?.machine.isResumable == false { self.deleteUpload() }
    }

    /// The URL cannot be loaded over HTTP. After a redirect it may have another scheme, which is never loaded otherwise:
    /// a server must not make the program read its files.
    func failForURL() {
        guard Self.isHTTP(self.request.url) else { return self.fail(.unsupportedURL, "unsupported URL") }
        self.fail(.badURL, "The URL has no host, or a port that does not exist.")
    }

    /// Not that of a WebSocket, which only `webSocketTask(with:)` opens.
    static func isHTTP(_ url: URL?) -> Bool { ["http", "https"].contains(url?.scheme?.loweredASCII) }

    func finish() {
        guard !self.isStopped else { return }
        self.stop()
        self.loader.finished()
    }
}

extension HTTPLoad: ExchangeConsumer {
    var demand: ContentDemand {
        guard let demand = self.loader.demandUnlessSuspended else { return .suspended }
        guard let decoder = self.decoder else { return .bytes(demand) }
        // No more is received before everything is decoded.
        return .bytes(demand > 0 && decoder.needsInput ? ContentDecoder.pieceLimit : 0)
    }

    var mayTakeConnection: Bool { self.loader.mayBecomeStream }

    func connectionReady(_ connection: ConnectionMetadata) {
        self.upload?.requestBegins(for: self.loader)
        self.restartBodyCount()
        if self.core.networkSettings.concernConnections { self.connected(connection) }
    }

    /// A request that is sent again, as after a challenge, sends its body from the beginning.
    private func restartBodyCount() {
        // A part of an upload begins at its offset.
        if case .appending = self.upload?.machine.phase { return }
        guard case .source(_, let length) = self.attempt?.body else { return }
        self.loader.bodyBegins(length: length)
    }

    func bodySent(_ count: Int) { self.loader.bodySent(count) }

    func informationalHeadReceived(_ head: ResponseHead) {
        guard let response = self.response(head, contentIsEncoded: false) else { return }
        self.loader.informationalReceived(response)
        if self.upload != nil { self.handleInformational(head) }
    }
}
