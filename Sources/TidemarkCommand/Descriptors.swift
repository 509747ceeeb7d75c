#if Server
    import Foundation

    #if canImport(Glibc)
        import Glibc
    #endif

    /// How many files and sockets the system lets this process hold.
    enum Descriptors {
        #if canImport(Glibc)
            private static let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        #else
            private static let resource = RLIMIT_NOFILE
        #endif

        /// For everything that is no connection: the store, its readers, standard output, libraries.
        private static let others = 128

        /// Asks for as many as so many connections need, where the usual limit is lower. Returns for how many the
        /// system's own limit leaves room.
        static func room(forConnections wanted: Int) -> Int {
            var limit = rlimit()
            guard getrlimit(resource, &limit) == 0 else { return wanted }
            let needed = rlim_t(wanted + others)
            guard limit.rlim_cur < needed else { return wanted }
            limit.rlim_cur = min(needed, limit.rlim_max)
            guard setrlimit(resource, &limit) == 0, getrlimit(resource, &limit) == 0 else { return wanted }
            return max(1, min(wanted, Int(clamping: limit.rlim_cur) - others))
        }
    }
#endif
