import Foundation
import URLLoading

/// A program with a background session, controlled by words:
///
///     BackgroundLoader IDENTIFIER FOLDER WORDS...
///
///     download URL, upload FILE URL   creates and resumes a task, with the settings of the words before
///     label TEXT, after SECONDS, priority NUMBER, hold   settings of the next task; `hold` does not resume it
///     discretionary, silent, user NAME PASSWORD, replace URL, later, no-cellular, no-expensive, no-constrained   settings of the session, before the first task
///     anyway       follows the words also if the daemon started the program
///     list         prints the session's tasks
///     kill         ends the program at once, as SIGKILL does
///     collect N    waits for N completions
///     events       waits for the end of the events
///
/// Prints what happens, and appends it to `FOLDER/log`. The files of downloads are moved to `FOLDER`.
@main
struct Program {
    static func main() throws {
        var words = Array(CommandLine.arguments.dropFirst())[...]
        guard let identifier = words.popFirst(), let folder = words.popFirst() else {
            exit(64)
        }
        let log = EventLog(folder: URL(fileURLWithPath: folder, isDirectory: true))
        let wasLaunched = URLSession.handleBackgroundEvents { identifier, completion in
            log.write("launched for \(identifier)")
            log.onEvents { completion() }
        }
        let plan = try Plan(words, launched: wasLaunched)
        let configuration = URLSessionConfiguration.background(withIdentifier: identifier)
        plan.apply(to: configuration)
        let session = URLSession(
            configuration: configuration, delegate: Delegate(log, plan), delegateQueue: nil)
        for step in plan.steps { step.perform(session, log) }
        session.finishTasksAndInvalidate()
        log.waitUntilInvalid()
    }
}

/// What the words say.
struct Plan {
    enum Step {
        case download(URL, TaskSettings)
        case upload(URL, URL, TaskSettings)
        case list
        case kill
        case collect(Int)
        case events

        func perform(_ session: URLSession, _ log: EventLog) {
            switch self {
            case .download(let url, let settings): settings.begin(session.downloadTask(with: url), log)
            case .upload(let file, let url, let settings):
                var request = URLRequest(url: url)
                request.httpMethod = "PUT"
                settings.begin(session.uploadTask(with: request, fromFile: file), log)
            case .list:
                let done = DispatchSemaphore(value: 0)
                session.getAllTasks { tasks in
                    for task in tasks {
                        log.write(
                            "listed \(task.taskIdentifier) \(task.taskDescription ?? "-") "
                                + (task.state == .suspended ? "suspended" : "running"))
                    }
                    done.signal()
                }
                done.wait()
            case .kill:
                log.write("killed")
                _ = Foundation.kill(getpid(), SIGKILL)
            case .collect(let count): log.waitForCompletions(count)
            case .events: log.waitForEvents()
            }
        }
    }

    struct TaskSettings {
        var label: String?
        var delay: TimeInterval?
        var priority: Float?
        var holds = false

        func begin(_ task: URLSessionTask, _ log: EventLog) {
            task.taskDescription = self.label
            if let delay { task.earliestBeginDate = Date(timeIntervalSinceNow: delay) }
            if let priority { task.priority = priority }
            log.write("created \(task.taskIdentifier) \(self.label ?? "-")")
            if !self.holds { task.resume() }
        }
    }

    struct Malformed: Error {}

    private(set) var steps: [Step] = []
    private(set) var isDiscretionary = false
    private(set) var isSilent = false
    private(set) var forbidden: Set<String> = []
    private(set) var credential: URLCredential?
    private(set) var replacement: URL?

    /// - Parameter launched: whether the daemon started the program, which then only takes its messages.
    init(_ words: ArraySlice<String>, launched: Bool) throws {
        var (words, settings) = (words, TaskSettings())
        func next() throws -> String {
            guard let word = words.popFirst() else { throw Malformed() }
            return word
        }
        func url() throws -> URL {
            guard let url = URL(string: try next()) else { throw Malformed() }
            return url
        }
        var followsWords = false
        while let word = words.popFirst() {
            switch word {
            case "anyway": followsWords = true
            case "label": settings.label = try next()
            case "after": settings.delay = Double(try next())
            case "priority": settings.priority = Float(try next())
            case "hold": settings.holds = true
            case "download":
                self.steps.append(.download(try url(), settings))
                settings = TaskSettings()
            case "upload":
                self.steps.append(.upload(URL(fileURLWithPath: try next()), try url(), settings))
                settings = TaskSettings()
            case "list": self.steps.append(.list)
            case "kill": self.steps.append(.kill)
            case "collect": self.steps.append(.collect(Int(try next()) ?? 0))
            case "events": self.steps.append(.events)
            case "discretionary": self.isDiscretionary = true
            case "silent": self.isSilent = true
            case "no-cellular", "no-expensive", "no-constrained": self.forbidden.insert(word)
            case "user":
                self.credential = URLCredential(user: try next(), password: try next(), persistence: .none)
            case "replace": self.replacement = try url()
            default: throw Malformed()
            }
        }
        if launched, !followsWords { self.steps = [.events] }
    }

    func apply(to configuration: URLSessionConfiguration) {
        configuration.isDiscretionary = self.isDiscretionary
        configuration.sessionSendsLaunchEvents = !self.isSilent
        configuration.urlCredentialStorage = nil
        configuration.allowsCellularAccess = !self.forbidden.contains("no-cellular")
        configuration.allowsExpensiveNetworkAccess = !self.forbidden.contains("no-expensive")
        configuration.allowsConstrainedNetworkAccess = !self.forbidden.contains("no-constrained")
    }
}

final class Delegate: NSObject, URLSessionDownloadDelegate, URLSessionDataDelegate, Sendable {
    private let log: EventLog
    private let plan: SendablePlan

    /// Immutable.
    private struct SendablePlan: @unchecked Sendable {
        let credential: URLCredential?
        let replacement: URL?
    }

    init(_ log: EventLog, _ plan: Plan) {
        self.log = log
        self.plan = SendablePlan(credential: plan.credential, replacement: plan.replacement)
    }

    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
        let name = downloadTask.taskDescription ?? "\(downloadTask.taskIdentifier)"
        let moved = (try? FileManager.default.moveItem(at: location, to: self.log.folder.appending(path: name))) != nil
        self.log.write("file \(downloadTask.taskIdentifier) \(name)\(moved ? "" : " failed")")
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
        expectedTotalBytes: Int64
    ) {
        self.log.write("resumed \(downloadTask.taskIdentifier) \(fileOffset) \(expectedTotalBytes)")
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        self.log.write("data \(dataTask.taskIdentifier) \(data.count)")
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        self.log.write("challenge \(task.taskIdentifier) \(challenge.protectionSpace.realm ?? "-")")
        completionHandler(.useCredential, self.plan.credential)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLSession.DelayedRequestDisposition, URLRequest?) -> Void
    ) {
        self.log.write("delayed \(task.taskIdentifier)")
        guard let replacement = self.plan.replacement else { return completionHandler(.continueLoading, nil) }
        completionHandler(.useNewRequest, URLRequest(url: replacement))
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        let status = (task.response as? HTTPURLResponse)?.statusCode ?? 0
        let error = error as? URLError
        let reason = error?.backgroundTaskCancelledReason.map { " reason \($0.rawValue)" } ?? ""
        let text = error.map { " \($0.localizedDescription)" } ?? ""
        self.log.completed(
            "completed \(task.taskIdentifier) \(task.taskDescription ?? "-") \(status) \(error?.errorCode ?? 0)\(reason)"
                + text)
    }

    func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) { self.log.eventsFinished() }

    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) { self.log.invalidated() }
}
