import FuzzTargets
import Glibc

/// Replays files: `Fuzzer TARGET FILE...` reports the violated invariant of each. Built for fuzzing (see `deploy/fuzz`)
/// it is libFuzzer on the target that `SLUICE_FUZZ_TARGET` names, with libFuzzer's own arguments.
@main
enum Fuzzer {
    static func main() {
        #if FUZZING
            exit(FuzzingRun.start())
        #else
            var arguments = CommandLine.arguments.dropFirst()
            guard let name = arguments.popFirst(), let target = FuzzTarget(rawValue: name) else {
                let names = FuzzTarget.allCases.map(\.rawValue).joined(separator: " ")
                print("usage: Fuzzer TARGET FILE...; targets: \(names)")
                exit(64)
            }
            let bad = arguments.filter { !Self.holds(target, $0) }
            exit(bad.isEmpty ? 0 : 1)
        #endif
    }

    private static func holds(_ target: FuzzTarget, _ path: String) -> Bool {
        guard let bytes = Self.content(of: path) else {
            print("\(path): cannot be read")
            return false
        }
        do throws(InvariantViolation) {
            try target.check(bytes)
            print("\(path): holds")
            return true
        } catch {
            print("\(path): \(error)")
            return false
        }
    }

    private static func content(of path: String) -> [UInt8]? {
        guard let file = fopen(path, "rb") else { return nil }
        defer { fclose(file) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while case let count = fread(&buffer, 1, buffer.count, file), count > 0 { bytes += buffer.prefix(count) }
        return bytes
    }
}
