// One measurement of a session, as JSON. Also built for FoundationNetworking, with only the import changed.
//
//   TransferBenchmark repeat URL COUNT DEPTH   loads URL, DEPTH at a time, until COUNT are done; a tenth before that unmeasured
//   TransferBenchmark download URL FILE
//   TransferBenchmark upload FILE URL
import Foundation
import URLLoading

func fail(_ reason: String) -> Never {
    FileHandle.standardError.write(Data((reason + "\n").utf8))
    exit(1)
}

/// Of this process.
enum Usage {
    /// Seconds of CPU so far.
    static var cpu: Double {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    /// Bytes of resident memory.
    static var memory: Int {
        let fields = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8))?.split(separator: " ") ?? []
        return fields.count > 1 ? (Int(fields[1]) ?? 0) * 4096 : 0
    }
}

/// Looks at the resident memory, twenty times a second.
final class MemoryWatch: @unchecked Sendable {
    private let lock = NSLock()
    private var samples: [Int] = []
    private let idle = Usage.memory

    func begin() {
        Thread.detachNewThread {
            while true {
                let now = Usage.memory
                self.lock.withLock { self.samples.append(now) }
                Thread.sleep(forTimeInterval: 0.05)
            }
        }
    }

    /// Peak growth of memory, in bytes, in the first and in the second half.
    var peaks: (early: Int, late: Int) {
        self.lock.withLock {
            let half = self.samples.count / 2
            let early = self.samples[..<half].max() ?? self.idle
            let late = self.samples[half...].max() ?? self.idle
            return (early - self.idle, late - self.idle)
        }
    }
}

/// Loads a URL again and again; a load begins when another has ended.
final class Repetition: @unchecked Sendable {
    private let session: URLSession
    private let url: URL
    private let lock = NSLock()
    private var waiting = 0
    private var running = 0
    private let finished = DispatchSemaphore(value: 0)

    init(_ session: URLSession, _ url: URL) {
        self.session = session
        self.url = url
    }

    func run(_ count: Int, depth: Int) {
        self.lock.withLock {
            self.waiting = count - depth
            self.running = depth
        }
        for _ in 0..<depth { self.begin() }
        self.finished.wait()
    }

    private func begin() {
        self.session.dataTask(with: self.url) { data, response, error in
            guard (response as? HTTPURLResponse)?.statusCode == 200, let data = data, !data.isEmpty else {
                fail("\(String(describing: response)) \(String(describing: error))")
            }
            self.ended()
        }.resume()
    }

    private func ended() {
        enum Next { case load, wait, end }
        let next = self.lock.withLock { () -> Next in
            if self.waiting > 0 {
                self.waiting -= 1
                return .load
            }
            self.running -= 1
            return self.running == 0 ? .end : .wait
        }
        switch next {
        case .load: self.begin()
        case .wait: break
        case .end: self.finished.signal()
        }
    }
}

func measure(_ what: String, _ count: Int, _ work: () -> Void) {
    let watch = MemoryWatch()
    watch.begin()
    let start = Date()
    let cpu = Usage.cpu
    work()
    let spent = Usage.cpu - cpu
    let seconds = Date().timeIntervalSince(start)
    let peaks = watch.peaks
    print(
        """
        {"what": "\(what)", "count": \(count), "seconds": \(seconds), "cpu_seconds": \(spent), \
        "early_bytes": \(peaks.early), "late_bytes": \(peaks.late)}
        """)
}

/// Opens a connection, so that the setup of a session is not counted as part of the transfer.
func warmUp(_ session: URLSession, _ url: URL) {
    let finished = DispatchSemaphore(value: 0)
    var request = URLRequest(url: url)
    request.httpMethod = "HEAD"
    session.dataTask(with: request) { _, response, error in
        guard response != nil else { fail("\(String(describing: error))") }
        finished.signal()
    }.resume()
    finished.wait()
}

let words = CommandLine.arguments
let configuration = URLSessionConfiguration.ephemeral
configuration.urlCache = nil
configuration.timeoutIntervalForRequest = 600
configuration.httpMaximumConnectionsPerHost = 32
let session = URLSession(configuration: configuration)

switch words.dropFirst().first {
case "repeat" where words.count == 5:
    guard let url = URL(string: words[2]), let count = Int(words[3]), let depth = Int(words[4]), count >= depth else {
        fail("repeat URL COUNT DEPTH")
    }
    let repetition = Repetition(session, url)
    repetition.run(max(depth, count / 10), depth: depth)
    measure("repeat", count) { repetition.run(count, depth: depth) }

case "download" where words.count == 4:
    guard let url = URL(string: words[2]) else { fail("download URL FILE") }
    let place = URL(fileURLWithPath: words[3])
    warmUp(session, url)
    measure("download", 1) {
        let finished = DispatchSemaphore(value: 0)
        session.downloadTask(with: url) { file, response, error in
            guard (response as? HTTPURLResponse)?.statusCode == 200, let file = file else {
                fail("\(String(describing: response)) \(String(describing: error))")
            }
            do { try FileManager.default.moveItem(at: file, to: place) } catch { fail("\(error)") }
            finished.signal()
        }.resume()
        finished.wait()
    }

case "upload" where words.count == 4:
    guard let url = URL(string: words[3]) else { fail("upload FILE URL") }
    var request = URLRequest(url: url)
    request.httpMethod = "PUT"
    warmUp(session, url)
    measure("upload", 1) {
        let finished = DispatchSemaphore(value: 0)
        session.uploadTask(with: request, fromFile: URL(fileURLWithPath: words[2])) { _, response, error in
            guard let status = (response as? HTTPURLResponse)?.statusCode, status == 201 || status == 204 else {
                fail("\(String(describing: response)) \(String(describing: error))")
            }
            finished.signal()
        }.resume()
        finished.wait()
    }

default:
    fail("repeat URL COUNT DEPTH | download URL FILE | upload FILE URL")
}
