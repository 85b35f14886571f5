/// The loops of a process, each on a thread of its own.
package final class LoopGroup: Sendable {
    package let loops: [Loop]

    /// Starts `count` loops (at least one).
    /// - Parameter lend: gives the first loop a thread that is there already, on which it is to `run`; `nil` starts one for it.
    /// - Throws: `SystemError` when there are not enough descriptors or threads.
    package init(count: Int, lend: ((Loop) -> Void)? = nil) throws(SystemError) {
        var loops: [Loop] = []
        for _ in 0..<max(1, count) {
            loops.append(Loop(system: try LinuxSystem()))
        }
        self.loops = loops
        for (index, loop) in loops.enumerated() {
            if index == 0, let lend {
                lend(loop)
                continue
            }
            guard SystemThread.start(named: "loop-\(index)", { loop.run() }) else {
                for loop in loops { loop.stop() }
                throw SystemError.wouldBlock
            }
        }
    }

    /// Ends all loops after their current turn. What is still connected is left to the end of the process.
    package func stop() {
        for loop in self.loops { loop.stop() }
    }
}
