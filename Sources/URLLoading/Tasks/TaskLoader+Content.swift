import Foundation
import HTTPSemantics
import HTTPTransport
import HTTPTypes
import Synchronization

extension TaskLoader {
    /// Whether the content may be cached: not that of downloads and uploads.
    var isCacheable: Bool { self.task is URLSessionDataTask && !(self.task is URLSessionUploadTask) }

    func requestChanged(_ request: URLRequest) {
        self.task.mutate(\.currentRequest) { $0.currentRequest = request }
    }

    // MARK: Response

    /// The final response has arrived. The load delivers its content only as it is pulled.
    func responseReceived(_ response: URLResponse) {
        guard self.transfer.isActive else { return }
        if self.consumer.isDelegate, self.task is URLSessionDataTask, let splitter = MultipartSplitter(response) {
            self.multipart = splitter
        }
        self.publish(response)
    }

    /// Delivers a response that is available as a whole, as from the cache.
    func deliver(_ response: URLResponse, _ data: Data) {
        guard self.transfer.isActive else { return }
        self.currentLoad = StoredLoad(data, for: self)
        self.responseReceived(response)
    }

    /// Publishes the response, or one of several responses of a multipart, and starts its content.
    fileprivate func publish(_ response: URLResponse) {
        let expected = response.expectedContentLength
        let isUnobserved = self.task.mutateIfUnobserved {
            $0.expectedToReceive = expected
            $0.response = response
        }
        if !isUnobserved {
            self.task.mutate(\.countOfBytesExpectedToReceive) { $0.expectedToReceive = expected }
            self.task.mutate(\.response) { $0.response = response }
            self.updateProgress()
        }
        switch self.consumer {
        case .awaitedData where !self.contentDelegates.isEmpty: self.askDisposition(response)
        case .data, .awaitedData:
            self.sink = .memory(Data())
            self.pull(.max)
        case .bytes(let channel, let handler):
            self.sink = .channel(channel)
            handler(.success(response))
            self.pull(DeliveryWindow.limit)
        case .file, .lastingFile: self.startFile(response)
        case .delegate: self.askDisposition(response)
        }
    }

    /// Starts the content of a program's `URLProtocol` that supplies no response, as simple ones of tests do.
    /// - Returns: `false` if the content is not taken without a response: files and `bytes(for:)` need one.
    func startContentWithoutResponse() -> Bool {
        switch self.consumer {
        case .data, .awaitedData:
            self.sink = .memory(Data())
            self.pull(.max)
        case .delegate where self.task is URLSessionDataTask:
            self.sink = .delegate
            self.pull(DeliveryWindow.limit)
        case .delegate, .file, .lastingFile, .bytes: return false
        }
        return true
    }

    /// Asks the delegate for the response disposition; `allow` if no delegate answers.
    private func askDisposition(_ response: URLResponse) {
        guard let task = self.task as? URLSessionDataTask else { return self.startFile(response) }
        self.transfer.dispositionRequested()
        let session = self.session
        let request = DelegateRequest<URLSession.ResponseDisposition>(
            method: .response, asyncMethod: .responseAsync,
            call: { delegate, handler in
                delegate.data?.urlSession(session, dataTask: task, didReceive: response) { handler($0) }
            },
            callAsync: { await $0.data?.urlSession(session, dataTask: task, didReceive: response) ?? .allow })
        self.core.delegateQueue.ask(
            self.contentDelegates, about: task, request,
            completion: self.awaiting { $0.dispositionReceived($1 ?? .allow, response) })
    }

    private func dispositionReceived(_ disposition: URLSession.ResponseDisposition, _ response: URLResponse) {
        switch disposition {
        case .cancel: return self.failed(LoadFailure.error(.cancelled, url: response.url))
        // An awaited data task cannot become anything else.
        case _ where !self.consumer.isDelegate: self.sink = .memory(Data())
        case .allow: self.sink = .delegate
        case .becomeDownload:
            // Unlike a part, the whole response becomes a file as it is.
            if self.multipart?.hasParts == false { self.multipart = nil }
            self.becomeDownload(response)
        case .becomeStream:
            return self.perform(self.transfer.dispositionReceived(.becomeStream))
        }
        self.perform(self.transfer.dispositionReceived(.receive))
    }

    private func perform(_ action: TransferMachine<DetachedConnection>.DispositionAction) {
        switch action {
        case .ignore: break
        case .pull: self.startPulling()
        case .finish: self.finish()
        case .closeAndFinish(let connection):
            connection.close()
            self.finish()
        case .becomeStream(let connection): self.becomeStream(connection)
        case .detach: if self.currentLoad?.detachConnection() != true { self.refuseStream() }
        case .refuseStream: self.refuseStream()
        }
    }

    private func refuseStream() {
        self.failed(
            LoadFailure.error(
                .unsupportedURL, url: self.task.latestRequest?.url,
                text: "A response can become a stream only on an open HTTP/1.1 connection, after the whole request."))
    }

    private func startPulling() {
        let isPacedByDelegate = self.consumer.isDelegate || self.delegateReceivesContent
        let credit = isPacedByDelegate ? DeliveryWindow.limit : Int.max
        if let multipart { return multipart.responseAllowed(self, credit: credit) }
        // A file pulls for itself.
        if case .file = self.sink { return }
        self.pull(credit)
    }

    /// The part that became a download is complete. The parts that follow belong to no task any more.
    fileprivate func partEnded() {
        guard case .file = self.sink else { return }
        self.multipart = nil
        self.stopLoad()
        self.finished()
    }

    // MARK: Content

    /// - Parameter wireBytes: size of `data` before its content coding was removed.
    func received(_ data: Data, wireBytes: Int) {
        guard self.transfer.isActive else { return }
        self.spend(data.count)
        if let multipart { return multipart.received(data, self) }
        self.deliver(data, wireBytes: wireBytes)
    }

    /// The file that takes content directly, without a copy as `Data`; `nil` if the content goes elsewhere.
    var file: DownloadSink? {
        guard self.transfer.isActive, self.multipart == nil, case .file(let file) = self.sink else { return nil }
        return file
    }

    func received(_ bytes: RawSpan, wireBytes: Int, into file: DownloadSink) {
        self.spend(bytes.byteCount)
        self.countReceived(wireBytes)
        file.append(bytes, for: self)
    }

    fileprivate func deliver(_ data: Data, wireBytes: Int) {
        switch self.sink {
        case .none: break
        case .memory(let all):
            self.sink = .none
            self.sink = .memory(self.appending(data, to: consume all))
            self.countReceived(wireBytes)
            // Counted above already: the result may be delivered before the delegate gets this piece.
            if self.delegateReceivesContent { self.enqueueForDelegate(data, wireBytes: 0) }
        case .delegate: self.enqueueForDelegate(data, wireBytes: wireBytes)
        case .file(let file):
            self.countReceived(wireBytes)
            file.append(data.bytes, for: self)
        case .channel(let channel):
            self.countReceived(wireBytes)
            // While the channel is full, the load gets no credit; `resumeChannel()` gives it later.
            if channel.offer(data) { self.pull(data.count) } else { self.channelCredit += data.count }
        }
    }

    /// Content that arrives in one piece is not copied.
    private func appending(_ data: Data, to all: consuming Data) -> Data {
        guard all.isEmpty else {
            all.append(data)
            return all
        }
        let capacity = self.response.map { self.initialCapacity(for: $0) } ?? 0
        guard capacity > data.count else { return data }
        var all = Data(capacity: capacity)
        all.append(data)
        return all
    }

    /// Reserves at most 1 MiB on the strength of a Content-Length alone. Allocating and freeing larger blocks would
    /// also teach the allocator to keep much memory for itself.
    private func initialCapacity(for response: URLResponse) -> Int {
        guard self.task.metadata.withLock({ $0.currentRequest?.httpMethod }) != "HEAD" else { return 0 }
        return Int(max(0, min(response.expectedContentLength, 1 << 20)))
    }

    /// The channel's reader has consumed bytes.
    func resumeChannel() {
        let credit = self.channelCredit
        self.channelCredit = 0
        if credit > 0 { self.pull(credit) }
    }

    private func enqueueForDelegate(_ data: Data, wireBytes: Int) {
        guard self.window.append(data, wireBytes: wireBytes, coalesces: self.coalescesContent) else { return }
        self.core.delegateQueue.add(of: self.task) { self.deliverWindow() }
    }

    /// On the delegate queue.
    private func deliverWindow() {
        for piece in self.window.takeAll() where !piece.data.isEmpty {
            self.countReceived(piece.wireBytes)
            if let task = self.task as? URLSessionDataTask {
                self.contentDelegates.notifyFirst(.data) { delegate in
                    delegate.data?.urlSession(self.session, dataTask: task, didReceive: piece.data)
                }
            }
            let credit = self.window.consumed(piece.data.count)
            if credit > 0 { self.core.executor.execute { self.pull(credit) } }
        }
    }

    // MARK: Progress

    /// From any thread.
    func countReceived(_ count: Int) {
        guard count > 0, !self.task.mutateIfUnobserved({ $0.bytesReceived += Int64(count) }) else { return }
        self.task.mutate(\.countOfBytesReceived) { $0.bytesReceived += Int64(count) }
        self.updateProgress()
    }

    /// From any thread. Does nothing unless the program has read `progress`.
    func updateProgress() {
        let metadata = self.task.metadata.withLock { $0.progress == nil ? nil : $0 }
        if let metadata { metadata.progress?.update(metadata) }
    }

    func bodySent(_ count: Int) {
        guard self.transfer.isActive else { return }
        let (sent, expected) = self.task.mutate(\.countOfBytesSent) { metadata in
            metadata.bytesSent += Int64(count)
            return (metadata.bytesSent, metadata.expectedToSend)
        }
        self.updateProgress()
        let (task, session) = (self.task, self.session)
        self.notifyDelegate(.sentBody) { delegate in
            delegate.task?.urlSession(
                session, task: task, didSendBodyData: Int64(count), totalBytesSent: sent,
                totalBytesExpectedToSend: expected)
        }
    }

    /// A request with a body is about to be sent, possibly again: the bytes sent before are not counted any more.
    /// - Parameter length: of the body in bytes; `nil` if unknown.
    func bodyBegins(length: Int64?) {
        guard self.transfer.isActive else { return }
        let length = length ?? NSURLSessionTransferSizeUnknown
        let (sent, expected) = self.task.metadata.withLock { ($0.bytesSent, $0.expectedToSend) }
        guard sent != 0 || expected != length else { return }
        // The smaller count first, so that no reader sees more bytes sent than expected.
        self.task.mutate(\.countOfBytesSent) { $0.bytesSent = 0 }
        self.task.mutate(\.countOfBytesExpectedToSend) { $0.expectedToSend = length }
        self.updateProgress()
    }

    /// The bytes before `offset` are at the server; those sent before and lost are not counted any more.
    func bodyContinues(at offset: Int64) {
        guard self.transfer.isActive else { return }
        self.task.mutate(\.countOfBytesSent) { $0.bytesSent = offset }
        self.updateProgress()
    }

    func informationalReceived(_ response: HTTPURLResponse) {
        let (task, session) = (self.task, self.session)
        self.notifyDelegate(.informationalResponse) { delegate in
            delegate.task?.urlSession(session, task: task, didReceiveInformationalResponse: response)
        }
    }
}

/// Where the content of a response goes.
enum ContentSink {
    case none
    /// To the delegate, through the delivery window.
    case delegate
    case memory(Data)
    case file(DownloadSink)
    case channel(ByteChannel)

    /// Calls `completion`, on any thread, when all content is written.
    func finish(_ completion: @escaping @Sendable (DownloadFileFailure?) -> Void) {
        switch self {
        case .file(let file): file.finish(completion)
        case .none, .delegate, .memory, .channel: completion(nil)
        }
    }

    /// Empty rather than `nil`: a response without content is a success.
    var data: Data {
        if case .memory(let data) = self { data } else { Data() }
    }

    var fileURL: URL? {
        if case .file(let file) = self { file.url } else { nil }
    }

    /// Keeps the file from being deleted.
    func keep() {
        if case .file(let file) = self { file.keep() }
    }

    /// Deletes the file, unless it was moved or is to be kept.
    func discard() {
        if case .file(let file) = self { file.discard() }
    }
}

/// Content queued for the delegate queue. It is coalesced while the queue is busy, and counted so that the network
/// delivers no faster than the delegate consumes. Thread-safe.
final class DeliveryWindow: Sendable {
    /// Bytes that are pulled in advance.
    static let limit = 512 << 10
    /// More is pulled when fewer bytes than this are outstanding.
    private static let watermark = 256 << 10

    /// The content of one delegate call.
    struct Piece: Sendable {
        var data: Data
        /// Size before the content coding was removed.
        var wireBytes: Int
    }

    private struct State {
        var pieces: [Piece] = []
        var isScheduled = false
        /// Bytes that the delegate consumed since more was last pulled.
        var consumed = 0
    }
    private let state = Mutex(State())

    /// - Parameter coalesces: whether `data` may be joined with the piece before it.
    /// - Returns: whether the caller must schedule a call of `takeAll()`.
    fileprivate func append(_ data: Data, wireBytes: Int, coalesces: Bool) -> Bool {
        self.state.withLock { state in
            if coalesces, !state.pieces.isEmpty {
                state.pieces[state.pieces.count - 1].data.append(data)
                state.pieces[state.pieces.count - 1].wireBytes += wireBytes
            } else {
                state.pieces.append(Piece(data: data, wireBytes: wireBytes))
            }
            defer { state.isScheduled = true }
            return !state.isScheduled
        }
    }

    fileprivate func takeAll() -> [Piece] {
        self.state.withLock { state in
            defer {
                state.pieces = []
                state.isScheduled = false
            }
            return state.pieces
        }
    }

    /// - Returns: how many more bytes to pull; 0 until that is worth a call.
    fileprivate func consumed(_ count: Int) -> Int {
        self.state.withLock { state in
            state.consumed += count
            guard state.consumed >= Self.limit - Self.watermark else { return 0 }
            defer { state.consumed = 0 }
            return state.consumed
        }
    }
}

/// Splits `multipart/x-mixed-replace` into its parts, each published as a response with its own content.
///
/// Each response waits for its disposition; until then the splitter keeps the received bytes and pulls no more.
final class MultipartSplitter {
    private var parser: MultipartParser
    private let response: URLResponse
    /// Whether the disposition of the published response is known. The first is that of the whole response.
    private var isResponseAllowed = false
    private(set) var hasParts = false
    private var isAtEnd = false
    private var hasCredit = false
    /// Bytes received without a pull of their own: those before the parts, their heads, and unparsed ones.
    private var overhead = 0

    /// - Returns: `nil` if the response is no `multipart/x-mixed-replace`.
    fileprivate init?(_ response: URLResponse) {
        guard let http = response as? HTTPURLResponse, http.mimeType == "multipart/x-mixed-replace",
            let type = http.value(forHTTPHeaderField: "Content-Type").flatMap({ ContentType($0) }),
            let boundary = type.parameter("boundary"), let parser = MultipartParser(boundary: boundary)
        else { return nil }
        self.parser = parser
        self.response = response
    }

    /// - Parameter credit: bytes to pull in advance, for all parts together.
    fileprivate func responseAllowed(_ loader: TaskLoader, credit: Int) {
        self.isResponseAllowed = true
        if !self.hasCredit {
            self.hasCredit = true
            loader.pull(credit)
        }
        self.deliverAndPull(loader)
    }

    fileprivate func received(_ data: Data, _ loader: TaskLoader) {
        self.parser.bytesReceived(data)
        self.overhead += data.count
        self.deliverAndPull(loader)
    }

    /// What is delivered is pulled again when it is consumed.
    private func deliverAndPull(_ loader: TaskLoader) {
        // What was pulled may have brought a part whose response waits.
        guard self.isResponseAllowed, self.deliverEvents(to: loader) else { return }
        let unparsed = self.parser.bufferedCount
        let parsed = self.overhead - unparsed
        self.overhead = unparsed
        if parsed > 0 { loader.pull(parsed) }
    }

    /// Delivers the rest.
    /// - Returns: `false` if a response waits for its disposition.
    func ended(_ loader: TaskLoader) -> Bool {
        self.isResponseAllowed = true
        if !self.isAtEnd { self.parser.inputEnded() }
        self.isAtEnd = true
        return self.deliverEvents(to: loader)
    }

    /// Delivers parsed parts up to the next response that waits for its disposition.
    /// - Returns: `false` if there is such a response.
    private func deliverEvents(to loader: TaskLoader) -> Bool {
        while let event = self.parser.nextEvent() {
            switch event {
            case .partBegan(let fields):
                self.isResponseAllowed = false
                self.hasParts = true
                loader.publish(self.part(fields))
                if !self.isResponseAllowed { return false }
            case .content(let bytes):
                self.overhead -= bytes.count
                loader.deliver(Data(bytes), wireBytes: bytes.count)
            case .partEnded:
                loader.partEnded()
                if loader.multipart == nil { return true }
            // Cameras end the stream without a final boundary: what arrived is valid.
            case .finished, .violation: break
            }
        }
        return true
    }

    private func part(_ fields: HTTPFields) -> URLResponse {
        guard let whole = self.response as? HTTPURLResponse, let url = whole.url else { return self.response }
        return HTTPURLResponse(
            url: url, statusCode: whole.statusCode, httpVersion: whole.httpVersion ?? "HTTP/1.1", fields: fields,
            contentIsEncoded: false)
    }
}
