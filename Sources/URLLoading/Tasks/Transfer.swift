import Foundation
import HTTPTransport
import Synchronization
import TLSEngine

/// The life of one data, upload or download task: starts a loader, hands on what that brings, and ends once.
///
/// What is told by loaders happens on the session's event loop, and so does everything here that is not said to be for
/// any thread.
final class Transfer: TaskDriving, @unchecked Sendable {
    enum Stage {
        case waiting
        case loading
        /// Everything is told, or on its way to the delegate queue.
        case ended
    }

    let core: SessionCore
    let session: URLSession
    /// Another one once a data task has become a download.
    private(set) var task: URLSessionTask
    let result: TransferResult
    private let body: TaskBody
    /// Why the task fails as soon as it is resumed; set before anybody has it.
    var flaw: URLError?
    /// What a download goes on from.
    var resumption: DownloadResumption?

    var stage = Stage.waiting
    var loader: (any Loader)?
    var sink = ContentSink.none
    var record = TaskMetricsRecord()
    /// Whether there is a delegate that could want metrics; known when the task begins.
    private(set) var isMeasured = false
    /// When the whole takes too long; `nil` while that clock stands still.
    private(set) var resourceDeadline: ContinuousClock.Instant?
    private var resourceTimeLeft: Duration
    private var begun = false
    private var isHeld = false
    var parts: PartsSplitting?
    /// The delegate is asked what becomes of the response.
    var awaitsAnswer = false
    /// The end came before the answer.
    var finishWaits = false
    /// Bytes that were taken and for which no others were asked for yet.
    var owedToChannel = 0
    /// The answer was `becomeStream`.
    var becomesStream = false
    var upgradedConnection: UpgradedConnection?
    /// First used on the loop, and only then by the delegate queue.
    private(set) lazy var window = DeliveryWindow()
    /// Whether the delegate of an awaited task may want its content, which is then no faster than that takes it.
    private(set) var tellsAwaitedContent = false
    /// Whether pieces of content may be told as one: what a protocol of the program cut stays cut.
    var joinsPieces = true

    init(_ task: URLSessionTask, of session: URLSession, body: TaskBody, result: TransferResult) {
        self.core = session.core
        self.session = session
        self.task = task
        self.body = body
        self.result = result
        self.resourceTimeLeft = Duration(timeout: session.core.configuration.timeoutIntervalForResource)
    }

    // MARK: From any thread

    func resumed() { self.core.pool.execute { self.reconcile() } }
    func suspended() { self.core.pool.execute { self.reconcile() } }

    func cancelled() {
        self.core.pool.execute { self.failed(LoadFailure.error(.cancelled, url: self.task.currentRequest?.url)) }
    }

    func priorityChanged(_ priority: Float) {
        self.core.pool.execute { self.loader?.setPriority(priority) }
    }

    /// What the task has, without looking at it as those do who want to hear of a change.
    var response: URLResponse? { self.task.facts.withLock { $0.response } }
    var priority: Float { self.task.facts.withLock { $0.priority } }

    /// For the idle clock of a request: its own, or the session's.
    func timeout(of request: URLRequest) -> Duration {
        Duration(timeout: request.chosenTimeout ?? self.core.configuration.timeoutIntervalForRequest)
    }

    var faces: [DelegateFace] { self.core.faces(for: self.task) }

    /// The delegates that are told of the response, the content and a file's growth: of an awaited task its own alone, as
    /// FoundationNetworking does it, and of one with a completion handler none.
    var contentFaces: [DelegateFace] {
        switch self.result {
        case .delegate: self.faces
        case .awaitedData, .lastingFile: self.task.facts.withLock { $0.delegate }.map { [$0] } ?? []
        case .data, .file, .bytes: []
        }
    }

    // MARK: Going on and holding

    /// Does what the task's state asks for now, however often that changed meanwhile.
    private func reconcile() {
        guard self.stage != .ended else { return }
        switch self.task.facts.withLock({ $0.state }) {
        case .running: self.begun ? self.hold(false) : self.begin()
        case .suspended: self.hold(true)
        case .canceling, .completed: break
        }
    }

    private func begin() {
        self.begun = true
        self.isMeasured = self.faces.contains { $0.mayAnswer(.metrics) }
        if case .awaitedData = self.result {
            self.tellsAwaitedContent = self.contentFaces.contains { $0.mayAnswer(.data) }
        }
        self.stage = .loading
        self.startResourceClock()
        if let flaw { return self.failed(flaw) }
        guard let request = self.resumption?.currentRequest ?? self.task.facts.withLock({ $0.currentRequest }) else {
            return self.failed(LoadFailure.error(.badURL, url: nil, text: "The request has no URL."))
        }
        self.load(request)
    }

    private func load(_ request: URLRequest) {
        switch LoaderChoice.loader(for: request, body: self.body, transfer: self) {
        case .success(let loader):
            self.loader = loader
            self.joinsPieces = !(loader is ProtocolLoad)
            loader.start()
        case .failure(let error): self.failed(error)
        }
    }

    private func hold(_ isHeld: Bool) {
        guard self.begun, self.isHeld != isHeld else { return }
        self.isHeld = isHeld
        if isHeld {
            self.resourceTimeLeft = self.resourceDeadline.map { ContinuousClock.now.duration(to: $0) } ?? .zero
            self.resourceDeadline = nil
        } else {
            self.startResourceClock()
        }
        self.loader?.hold(isHeld)
    }

    private func startResourceClock() {
        let deadline = ContinuousClock.now + self.resourceTimeLeft
        self.resourceDeadline = deadline
        self.core.resourceClock.watch(until: deadline, for: self.core)
    }

    func tookTooLong() {
        self.failed(LoadFailure.error(.timedOut, url: self.task.currentRequest?.url))
    }

    /// Does `work` with an answer of a delegate, on the loop, if the transfer has not ended meanwhile.
    func awaiting<Answer: Sendable>(_ work: @escaping @Sendable (Transfer, Answer) -> Void)
        -> @Sendable (Answer) -> Void
    {
        { answer in
            self.core.pool.execute {
                guard self.stage != .ended else { return }
                work(self, answer)
            }
        }
    }

    // MARK: Becoming something else

    /// Goes on as another task with the same number.
    func become(_ task: URLSessionTask) {
        self.task = task
        self.core.replace(with: task)
    }

    // MARK: Ending

    /// Everything has come.
    func finished() {
        guard self.stage == .loading else { return }
        guard !self.awaitsAnswer else { return self.finishWaits = true }
        self.parts?.ended(self)
        self.sink.finish { error in
            self.core.pool.execute {
                self.end(error.map { LoadFailure.error($0.code, url: self.task.currentRequest?.url, cause: $0.cause) })
            }
        }
    }

    /// Nothing more will come. What a download has is kept for another attempt, if the network was to blame.
    func failed(_ error: any Error) {
        guard self.stage != .ended else { return }
        if let error = error as? URLError, error.code != .cancelled, case .file = self.sink {
            self.breakOff(error) { _ in }
        } else {
            self.end(error)
        }
    }

    /// Begins anew, with another request that is not of the same loader.
    func restart(with request: URLRequest) {
        guard self.stage == .loading else { return }
        self.loader?.stop()
        self.loader = nil
        self.requestChanged(request)
        self.load(request)
    }

    func end(_ error: (any Error)?) {
        guard self.stage != .ended else { return }
        self.stop()
        self.tellEnd(error)
    }

    /// Lets nothing more happen.
    func stop() {
        self.stage = .ended
        self.resourceDeadline = nil
        self.loader?.stop()
        self.loader = nil
    }
}

extension Duration {
    /// A timeout in seconds as programs write it; what is no positive number of seconds means a year.
    init(timeout: TimeInterval) {
        let year = 365.0 * 86_400
        self = .seconds(timeout > 0 && timeout < year ? timeout : year)
    }
}
