import Foundation

/// The measured values, as one line of JSON.
struct Measurement: Encodable {
    var count: Int
    var seconds: Double
    var cpuSeconds: Double
    /// Growth of resident memory, in bytes.
    var grownBytes: Int

    /// Measures `work`, which returns the number of its operations.
    static func of(_ work: () async throws -> Int) async throws -> Measurement {
        let memory = self.memory
        let clock = ContinuousClock.now
        let cpu = self.cpu
        let count = try await work()
        return Measurement(
            count: count, seconds: (ContinuousClock.now - clock) / .seconds(1), cpuSeconds: self.cpu - cpu,
            grownBytes: self.memory - memory)
    }

    func tell() throws {
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        print(String(decoding: try encoder.encode(self), as: UTF8.self))
    }

    /// Seconds of CPU that the process had so far.
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
